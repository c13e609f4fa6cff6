# What the scripts in actions/ share. Needs jq.
#
# A script is given its variables in the file $SUTLER_VARS_FILE, and gives things back by writing files
# in $SUTLER_RESULT_DIR. They count only if it ends with 0.

set -eu
umask 077

# fail SENTENCE: ends the action; the sentence is what the user reads.
fail() {
    printf '%s\n' "$1" >"$SUTLER_RESULT_DIR/error"
    exit 1
}

command -v jq >/dev/null || fail "The operator must install jq where this bundle runs: on the broker's host, or in its image."

# var NAME: the value of a variable, or nothing.
var() {
    jq -r --arg name "$1" '.[$name] // empty' "$SUTLER_VARS_FILE"
}

# put FILE KEY: adds the value that stands on standard input. Values are never arguments: those stand
# in process lists.
put() {
    file=$SUTLER_RESULT_DIR/$1
    [ -e "$file" ] || echo '{}' >"$file"
    jq -Rs --arg key "$2" --slurpfile there "$file" '$there[0] + {($key): .}' >"$file.new"
    mv "$file.new" "$file"
}

# state KEY VALUE: remembers something about the instance, for every later action: `var state_KEY`.
state() {
    printf '%s' "$2" | put state.json "$1"
}

# binding_state KEY VALUE: the same about the binding: `var binding_state_KEY`.
binding_state() {
    printf '%s' "$2" | put binding_state.json "$1"
}

# credential KEY VALUE: gives something to whoever asked for the binding.
credential() {
    printf '%s' "$2" | put credentials.json "$1"
}

# progress PERCENT SENTENCE: tells whoever polls how far it is.
progress() {
    jq -cn --argjson percent "$1" --arg text "$2" '{percent: $percent, text: $text}' \
        >>"$SUTLER_RESULT_DIR/progress"
}

# random: 32 letters and digits that nobody can guess.
random() {
    od -An -N16 -tx1 /dev/urandom | tr -d ' \n'
}
