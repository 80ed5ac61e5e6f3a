#!/bin/sh
# One word for what the program is made of: its sources, the versions of its packages, and how it is bundled. By content
# and not by time, so that a bundle that was made of anything else is never taken for one of this.
cd -- "$(dirname -- "$0")/.." || exit 1
sum=$(find src package.json package-lock.json scripts/bundle.ts -type f -exec cksum {} + | LC_ALL=C sort | cksum)
echo "${sum%% *}-${sum##* }"
