#!/bin/sh
# Stores a folder in an archive class, waits until only the storage network holds it, restores it and compares every byte.
# Prints each step.
# usage: back-up.sh <folder> <bucket>, with AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment
set -eu
folder=$1
bucket=$2
s3="aws --endpoint-url $AWS_ENDPOINT_URL s3"
s3api="aws --endpoint-url $AWS_ENDPOINT_URL s3api"

# Prints the keys of the bucket that are listed with this storage class, one per line.
in_class() {
  $s3api list-objects-v2 --bucket "$bucket" --query "Contents[?StorageClass=='$1'].[Key]" --output text | grep -v '^None$' || true
}

# Runs a command every second until it succeeds, for at most two minutes.
wait_until() {
  for _ in $(seq 120); do
    if "$@"; then return 0; fi
    sleep 1
  done
  echo "timed out: $*" >&2
  return 1
}

none_in_class() { [ -z "$(in_class "$1")" ]; }
is_back() { $s3api head-object --bucket "$bucket" --key "$1" --query Restore --output text | grep -q 'ongoing-request="false"'; }

echo "1. Store $folder in the class GLACIER: dealgate makes a deal with the storage network for each object."
$s3 mb "s3://$bucket" > /dev/null
$s3 sync "$folder" "s3://$bucket" --storage-class GLACIER > /dev/null

echo "2. While the gateway still has a copy, the objects are readable and listed as GLACIER_IR."
echo "   Once the deals are made and the network holds the data, the gateway evicts its copies."
wait_until none_in_class GLACIER_IR
in_class GLACIER | while read -r key; do
  cid=$($s3api head-object --bucket "$bucket" --key "$key" --query 'Metadata.cid' --output text)
  echo "   $key is in a deal as $cid"
done

echo "3. An evicted object cannot be read before it is restored."
first=$(in_class GLACIER | head -n 1)
if $s3api get-object --bucket "$bucket" --key "$first" /dev/null > /dev/null 2>&1; then
  echo "$first was readable" >&2
  exit 1
fi

echo "4. Restore everything for seven days: the gateway fetches it from the storage provider."
in_class GLACIER | while read -r key; do
  $s3api restore-object --bucket "$bucket" --key "$key" --restore-request 'Days=7' > /dev/null
done
in_class GLACIER | while read -r key; do wait_until is_back "$key"; done

echo "5. Read it back, and compare every byte."
back=$(mktemp -d)
trap 'rm -rf "$back"' EXIT
$s3 sync "s3://$bucket" "$back" --force-glacier-transfer > /dev/null
diff -r "$folder" "$back"
echo "All bytes are identical."
