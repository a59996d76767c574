#!/usr/bin/env bash
# Creates try/: a small project with two commits since its last release.
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
git config tag.gpgsign false
printf '#!/usr/bin/env bash\necho "Hello, ${1:-world}"\n' > hello.sh
printf '#!/usr/bin/env bash\n[ "$(bash hello.sh)" = "Hello, world" ]\n' > check.sh
git add .
git commit -qm start
git tag v1
printf '#!/usr/bin/env bash\necho "Hello, ${1:-world}"\n[ -z "${2:-}" ] || echo "and $2"\n' > hello.sh
git commit -qam 'Greet a second person'
echo '# hello' > README.md
git add .
git commit -qm 'Add a README'
