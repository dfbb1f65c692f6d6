#!/bin/sh
# Archives a folder in an offline deal: a task on the task platform, for which storage providers bid.
# usage: archive.sh store <folder> <bucket> [<highest price>]   signs in with the password on standard input
#        archive.sh show <bucket>                               the task, its bids and deals, and where the objects are
#        archive.sh restore <bucket> <folder>                   fetches the objects from the deals, and reads them
# AWS_ENDPOINT_URL names the server. DEALGATE is the program (dealgate), EMAIL the user (owner@localhost).
set -eu
aws="aws --endpoint-url $AWS_ENDPOINT_URL --profile dealgate"

# Prints the keys of the bucket that are listed with this storage class, one per line.
in_class() {
  $aws s3api list-objects-v2 --bucket "$bucket" --query "Contents[?StorageClass=='$1'].[Key]" --output text | grep -v '^None$' || true
}

is_back() { $aws s3api head-object --bucket "$bucket" --key "$1" --query Restore --output text | grep -q 'ongoing-request="false"'; }

# Runs a command every second until it succeeds, for at most two minutes.
wait_until() {
  for _ in $(seq 120); do
    if "$@"; then return 0; fi
    sleep 1
  done
  echo "timed out: $*" >&2
  return 1
}

# Prints members of the newest offline deal of the bucket.
of_deal() { $aws dealgate list-bucket-offline-deals --bucket "$bucket" --query "OfflineDeal[0].$1" --output text; }

store() {
  folder=$1 bucket=$2 price=${3:-0.000001}
  echo "1. Sign in at the task platform, for keys that aws-cli finds in the profile dealgate."
  ${DEALGATE:-dealgate} login --email "${EMAIL:-owner@localhost}" --password-stdin --endpoint-url "$AWS_ENDPOINT_URL" > /dev/null
  model=$(mktemp)
  trap 'rm -f "$model"' EXIT
  $aws s3 cp s3://-/aws-model.json "$model" > /dev/null
  $aws configure add-model --service-name dealgate --service-model "file://$model"
  # AWS CLI 2 needs it for keys with spaces: see docs/extensions.md.
  $aws configure set profile.dealgate.dealgate.signature_version s3v4

  echo "2. Store $folder in the class DEEP_ARCHIVE, in a bucket with terms for offline deals."
  $aws s3 mb "s3://$bucket" > /dev/null
  $aws dealgate set-bucket-deal-configuration --bucket "$bucket" \
    --offline-terms "IsPublic=true,AutoBid=true,MaxPrice=$price,ExpireDays=1" > /dev/null
  $aws s3 sync "$folder" "s3://$bucket" --storage-class DEEP_ARCHIVE > /dev/null

  echo "3. Post the task: the gateway packs the bucket, and the best bid wins."
  task=$($aws dealgate create-bucket-offline-deal --bucket "$bucket" --prefer wait=300 --query Task.TaskUuid --output text)
  echo "   Task $task"
}

show() {
  bucket=$1
  of_deal '[TaskStatus, Task.TaskUuid]' | {
    read -r status task
    echo "Task: $status"
    $aws dealgate get-task --task-uuid "$task" --query 'Bids[].[User.Providers[0].MinerId, Price, Status]' --output text |
      while read -r bid; do echo "Bid: $bid"; done
  }
  of_deal 'Deals[].[MinerId, Status, Note]' | while read -r deal; do echo "Deal: $deal"; done
  echo "Objects on the gateway: $(in_class GLACIER_IR | wc -l)"
  echo "Objects only in deals: $(in_class DEEP_ARCHIVE | wc -l)"
}

restore() {
  bucket=$1 folder=$2
  cold=$(in_class DEEP_ARCHIVE)
  echo "$cold" | while read -r key; do
    [ -z "$key" ] || $aws s3api restore-object --bucket "$bucket" --key "$key" --restore-request 'Days=7' > /dev/null
  done
  echo "$cold" | while read -r key; do
    [ -z "$key" ] || wait_until is_back "$key"
  done
  $aws s3 sync "s3://$bucket" "$folder" --force-glacier-transfer > /dev/null
  echo "$bucket is in $folder."
}

case "${1:-}" in
  store | show | restore) "$@" ;;
  *) sed -n '2,6s/^# //p' "$0"; exit 2 ;;
esac
