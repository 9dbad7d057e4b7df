#!/bin/sh
# Makes every generated file again in a copy of the tree and fails, with the difference, where the tree has another one. Then checks
# that go.mod and go.sum are tidy.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cd "$root"
make --no-print-directory bin/controller-gen
git ls-files -z --cached --others --exclude-standard | tar --null --ignore-failed-read -T - -cf - | tar -xf - -C "$copy"
mkdir -p "$copy/bin"
cp bin/controller-gen "$copy/bin/"
touch "$copy/bin/controller-gen"
make --no-print-directory -C "$copy" generate >/dev/null
status=0
for path in api config office/protocol docs/protocol.md; do
	diff -ru "$path" "$copy/$path" || status=1
done
for module in . hack/localcluster; do
	(cd "$module" && go mod tidy -diff) || status=1
done
if [ "$status" -ne 0 ]; then
	echo "verify: something is not up to date: run make generate, and go mod tidy in the module named" >&2
else
	echo "verify: generated files and modules are up to date"
fi
exit "$status"
