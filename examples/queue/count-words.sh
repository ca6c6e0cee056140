#!/bin/sh
# Counts the words of a file, as a program for the `command` handler.
#
# In:   one JSON object on standard input, such as
#         {"task": "...", "attempt": 1, "key": "words-readme", "input": {"file": "README.md"}, "checkpoint": null}
# Out:  one JSON document on standard output: the result, or the reason for skipping.
# Exit: 0 done, 3 skipped, 75 try again later, anything else failed for good.

# Good enough for a plain file name; a real program uses a JSON parser.
file=$(sed -n 's/.*"file" *: *"\([^"]*\)".*/\1/p')

if [ -z "$file" ]; then
    echo "the input names no file" >&2        # the end of standard error is kept as the error message
    exit 1
fi
if [ -e "$file.lock" ]; then
    echo "$file is being written" >&2
    echo '{"retry_after": "2s"}'              # not before two seconds have passed
    exit 75
fi
if [ ! -e "$file" ]; then
    echo "there is no file $file" >&2
    exit 1
fi
if [ ! -s "$file" ]; then
    echo '"the file is empty"'
    exit 3
fi

words=$(wc -w < "$file")
printf '{"file": "%s", "words": %d}\n' "$file" "$words"
