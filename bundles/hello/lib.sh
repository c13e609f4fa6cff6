# Functions of the scripts: plain text in, plain files out. The manifest restricts values to letters and spaces, so
# no JSON tool is needed.
set -eu
umask 077

# state KEY: a value that an earlier action stored, or nothing.
state() {
    if [ -n "${BUNDLE_STATE_LOCATION-}" ] && [ -f "$BUNDLE_STATE_LOCATION/$1" ]; then
        cat "$BUNDLE_STATE_LOCATION/$1"
    fi
}

# var NAME: a variable that is a text without quotes.
var() {
    tr ',{}' '\n\n\n' <"$SUTLER_VARS_FILE" | sed -n "s/^ *\"$1\" *: *\"\\([^\"]*\\)\" *\$/\\1/p" | head -n 1
}

# give FILE JSON: writes a result file atomically.
give() {
    printf '%s\n' "$2" >"$SUTLER_RESULT_DIR/$1.new"
    mv "$SUTLER_RESULT_DIR/$1.new" "$SUTLER_RESULT_DIR/$1"
}

# progress PERCENT TEXT
progress() {
    printf '{"percent": %s, "text": "%s"}\n' "$1" "$2" >>"$SUTLER_RESULT_DIR/progress"
}
