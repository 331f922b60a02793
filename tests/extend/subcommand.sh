# The new command answers, has help, and stands in the overview and in the manual page.
set -eu
"$GEPOLAB" version | grep -q '^gepolab [0-9]'
"$GEPOLAB" version --json | grep -q '"version"'
"$GEPOLAB" version --help | grep -q 'as JSON'
"$GEPOLAB" help | grep -q ' version '
"$GEPOLAB" help --man | grep -q '^\.SS "version '
