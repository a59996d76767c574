#!/usr/bin/env bash
# Creates try/: a git repository with four packages. Three of them use the old function.
set -euo pipefail
unset CDPATH GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE # leave an enclosing repository alone
cd "$(dirname "$0")"
[ ! -e try ] || { echo 'try/ is there already: remove it first' >&2; exit 1; }
mkdir try
cd try
git init --quiet --initial-branch main
git config user.name You
git config user.email you@example.org
git config commit.gpgsign false

mkdir lib packages
cat > lib/log.sh <<'CODE'
old_log() { echo "$1"; }
log() { echo "$1: $2"; }
CODE
package() { # name, program, its output after the migration
  mkdir "packages/$1"
  printf '. ../../lib/log.sh\n%s\n' "$2" > "packages/$1/run.sh"
  cat > "packages/$1/check.sh" <<CODE
#!/usr/bin/env bash
diff <(bash run.sh) <(printf '%s\n' '$3') && ! grep -n old_log run.sh
CODE
  chmod +x "packages/$1/check.sh"
}
package billing 'old_log "two invoices"' 'info: two invoices'
package mail 'old_log "cannot send"' 'error: cannot send'
package search 'old_log "cannot find; found 3"' 'a check that never passes'
package web 'log info "served"' 'info: served'
git add --all
git commit --quiet --message 'start'
