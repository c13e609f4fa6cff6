# What the scripts share: plain text in, plain files out. Values are letters and spaces, held to that by
# the manifest, so no JSON tool is needed.
set -eu
umask 077

# state KEY: what an earlier action remembered, or nothing.
state() {
    if [ -n "${BUNDLE_STATE_LOCATION-}" ] && [ -f "$BUNDLE_STATE_LOCATION/$1" ]; then
        cat "$BUNDLE_STATE_LOCATION/$1"
    fi
}

# var NAME: a variable that is a text without quotes.
var() {
    tr ',{}' '\n\n\n' <"$SUTLER_VARS_FILE" | sed -n "s/^ *\"$1\" *: *\"\\([^\"]*\\)\" *\$/\\1/p" | head -n 1
}

# give FILE JSON: gives something back, whole or not at all.
give() {
    printf '%s\n' "$2" >"$SUTLER_RESULT_DIR/$1.new"
    mv "$SUTLER_RESULT_DIR/$1.new" "$SUTLER_RESULT_DIR/$1"
}

# progress PERCENT TEXT
progress() {
    printf '{"percent": %s, "text": "%s"}\n' "$1" "$2" >>"$SUTLER_RESULT_DIR/progress"
}
