# What the rows above say, as zsh asks for it. A row's fields are parted by tabs, an empty one is "-":
#   c COMMAND ARGUMENTS SUMMARY, o COMMAND LETTER OPTION VALUE HELP, v KIND NAME MEANING, a OLD COMMAND
# A command has one word or two, or, where an option chooses it, "analyze --table outcomes".

# Lookups are awk's: a shell reads a pipe byte by byte. A name's `:` would end it for _describe.
_gepolab_find() { # PROGRAM COMMAND [WORD]: over the rows, with c the command and w the word
  _gepolab_rows | command awk -F '\t' -v c="$2" -v w="${3-}" "
    function show(name, about) { gsub(/:/, \"\\\\:\", name); print name \":\" (about == \"-\" ? \"\" : about) } $1"
}

# Offers the names of one kind with what they mean, with $2 behind each.
_gepolab_names() {
  local -a names=(${(f)"$(_gepolab_find '$1 == "v" && $2 == c {show($3, $4)}' $1)"})
  _describe -t names "${(L)1}" names ${2:+-S} ${2:+$2}
}

# Offers the commands, or the second words of those that begin with $1.
_gepolab_commands() {
  local -a names=(${(f)"$(_gepolab_find '$1 != "c" {next} c == "" && $2 !~ / / {show($2, $4)}
    c != "" && index($2, c " ") == 1 {word = substr($2, length(c) + 2); if (word !~ / /) show(word, $4)}' "$1")"})
  [[ -z $1 ]] && names+=("help:what there is, or the help of one command")
  _describe -t commands command names
}

# What a command's help calls the words after it; fails where there is no such command.
_gepolab_arguments() {
  REPLY=$(_gepolab_find '$1 == "c" && $2 == c {print $3; found = 1; exit} END {exit !found}' "$1")
}

# The command that the line's words begin with: an old word stands for its name now.
_gepolab_command() { # WORD...
  local command word
  command=$(_gepolab_find '$1 == "a" && $2 == c {print $3}' $1)
  command=${command:-$1}
  while (( $# > 2 )); do
    shift
    for word in "$command $1" "$command $1 ${2-}" "$command ${1/=/ }"; do
      if (( $# > 1 )) && _gepolab_arguments $word; then command=$word; fi
    done
  done
  REPLY=$command
}

_gepolab_options() {
  local -a names=(${(f)"$(_gepolab_find '$1 == "o" && $2 == c {show($4, $6); if ($3 != "-") show($3, $6)}
    END {show("--help", "options and examples")}' "$1")"})
  _describe -o -t options option names
}

# What help calls the value of an option; fails where the command has none that takes one.
_gepolab_value_of() {
  REPLY=$(_gepolab_find '$1 == "o" && $2 == c && $5 != "-" && ($3 == w || $4 == w) {print $5; found = 1; exit}
    END {exit !found}' "$1" "$2")
}

# key=value of the command $1.
_gepolab_override() {
  local kind=FIELD within= key
  [[ $1 == policy ]] && kind=SETTING
  if [[ $kind == FIELD && $PREFIX == algorithm.* ]]; then
    kind=SETTING within=algorithm.
  fi
  if compset -P '*='; then
    key=${IPREFIX%=}
    if [[ $kind == FIELD && $key == algorithm ]]; then
      _gepolab_names ALGORITHM
    else
      _gepolab_names "$kind:${key#$within}"
    fi
  else
    [[ -n $within ]] && compset -P algorithm.
    _gepolab_names $kind =
  fi
}

# What a word of help stands for: $1 the command, $2 that word.
_gepolab_offer_for() {
  case $2 in
  *=value) _gepolab_override $1 ;;
  ALGORITHM | METRIC | TABLE | FIGURE | KIND | FIELD) _gepolab_names $2 ;;
  RECIPE)
    _gepolab_names RECIPE
    _files -g '*.yaml'
    ;;
  DIR | FOLDER | RESULTS) _directories ;;
  STUDY) _files -g '*.db' ;;
  *.db | *.csv | *.html | *.yaml | *.json) _files -g "*.${2##*.}" ;;
  FILE | PROGRAM) _files ;;
  *[A-Z]* | '') ;; # a number, or text that no table has
  *) compadd -- $2 ;; # one of a few words, which help lists
  esac
}

# All that a phrase of help allows: "text|markdown", "RECIPE [key=value …]". An option in it and its
# value are offered elsewhere.
_gepolab_offer_phrase() {
  local word skip= phrase=${2//[][|]/ }
  phrase=${${phrase//…/}//.../}
  for word in ${=phrase}; do
    if [[ $word == -* ]]; then
      skip=1
    elif [[ -n $skip ]]; then
      skip=
    else
      _gepolab_offer_for $1 $word
    fi
  done
}

_gepolab() {
  local command=$words[2] before=$words[CURRENT-1] REPLY=
  if (( CURRENT == 2 )); then
    _gepolab_commands ''
    return
  fi
  if [[ $command == help ]]; then
    if [[ $before == --completion ]]; then
      compadd bash zsh
    elif (( CURRENT == 3 )); then
      _gepolab_commands ''
      compadd -- --man --completion
    fi
    return
  fi
  (( CURRENT == 3 )) && _gepolab_commands $command
  _gepolab_command ${words[2,CURRENT]}
  command=$REPLY
  if [[ $PREFIX == --*=* ]] && _gepolab_value_of $command ${PREFIX%%=*}; then
    compset -P '*='
    _gepolab_offer_phrase $command $REPLY
  elif [[ $before == -* ]] && _gepolab_value_of $command $before; then
    _gepolab_offer_phrase $command $REPLY
  elif [[ $PREFIX == -* ]]; then
    _gepolab_options $command
  elif _gepolab_arguments $command; then
    _gepolab_offer_phrase $command $REPLY
  fi
}

# As a file of its own, which zsh loads when the command is first completed, or sourced.
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  _gepolab "$@"
else
  compdef _gepolab gepolab
fi
