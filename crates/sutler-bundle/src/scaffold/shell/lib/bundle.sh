# Functions of the scripts in actions/. Needs jq.
#
# A script reads its variables from the file $SUTLER_VARS_FILE, and writes its results to files in
# $SUTLER_RESULT_DIR. They are used only if it exits with 0.

set -eu
umask 077

# fail SENTENCE: ends the action; the user reads the sentence.
fail() {
    printf '%s\n' "$1" >"$SUTLER_RESULT_DIR/error"
    exit 1
}

command -v jq >/dev/null || fail "The operator must install jq where this bundle runs: on the broker's host, or in its image."

# var NAME: the value of a variable, or nothing.
var() {
    jq -r --arg name "$1" '.[$name] // empty' "$SUTLER_VARS_FILE"
}

# put FILE KEY: adds the value from standard input. Values are never arguments, which process lists show.
put() {
    file=$SUTLER_RESULT_DIR/$1
    [ -e "$file" ] || echo '{}' >"$file"
    jq -Rs --arg key "$2" --slurpfile there "$file" '$there[0] + {($key): .}' >"$file.new"
    mv "$file.new" "$file"
}

# state KEY VALUE: stores a value of the instance for every later action: `var state_KEY`.
state() {
    printf '%s' "$2" | put state.json "$1"
}

# binding_state KEY VALUE: the same for the binding: `var binding_state_KEY`.
binding_state() {
    printf '%s' "$2" | put binding_state.json "$1"
}

# credential KEY VALUE: adds a value to the credentials of the binding.
credential() {
    printf '%s' "$2" | put credentials.json "$1"
}

# progress PERCENT SENTENCE: reports progress to the platform.
progress() {
    jq -cn --argjson percent "$1" --arg text "$2" '{percent: $percent, text: $text}' \
        >>"$SUTLER_RESULT_DIR/progress"
}

# random: 32 random hexadecimal digits.
random() {
    od -An -N16 -tx1 /dev/urandom | tr -d ' \n'
}
