#!/bin/sh
# Uploads a file to a content-addressed network, and pays for its storage from a wallet.
# usage: pay.sh wallet                          makes a wallet and links it to the key pair; the password is on standard input
#        pay.sh store <file> <bucket> [<days>]  stores the file in the bucket and uploads it
#        pay.sh pay <bucket> <key> [<coins>]    pays for the upload; the password is on standard input
#        pay.sh show <bucket> <key>             the upload, its deals and its payment
# AWS_ENDPOINT_URL names the server, DEALGATE_DATA its data folder (./dealgate-data). DEALGATE is the program (dealgate).
set -eu
dealgate="${DEALGATE:-dealgate}"
aws="aws --endpoint-url $AWS_ENDPOINT_URL"

# Prints members of the newest upload of the object.
of_upload() { $aws dealgate list-object-uploads --bucket "$bucket" --key "$key" --query "Uploads[0].$1" --output text; }

# With the calls of the plugins, as the server describes them.
add_model() {
  model=$(mktemp)
  trap 'rm -f "$model"' EXIT
  $aws s3 cp s3://-/aws-model.json "$model" > /dev/null
  $aws configure add-model --service-name dealgate --service-model "file://$model"
  # AWS CLI 2 needs it for keys with spaces: see docs/extensions.md.
  $aws configure set "${AWS_PROFILE:+profile.}${AWS_PROFILE:-default}.dealgate.signature_version" s3v4
}

wallet() {
  read -r password
  echo "$password" | $dealgate wallet create --password -
  # The key of the wallet stays in its file: a nonce is signed with it.
  echo "$password" | $dealgate wallet link --password - --endpoint-url "$AWS_ENDPOINT_URL"
}

store() {
  file=$1 bucket=$2 days=${3:-180} key=$(basename "$1")
  add_model
  $aws s3 mb "s3://$bucket" > /dev/null
  $aws s3 cp "$file" "s3://$bucket/$key" > /dev/null
  $aws dealgate upload-object-to-ipfs --bucket "$bucket" --key "$key" --duration-days "$days" --prefer wait=300 \
    --query '[SourceFileUploadId, WCid, IpfsUrl]' --output text | {
    read -r id w_cid url
    printf 'Upload: %s\nFor payments: %s\nReadable at: %s\n' "$id" "$w_cid" "$url"
  }
}

pay() {
  bucket=$1 key=$2
  # Without an amount, at most 1 coin is paid.
  $dealgate wallet pay "$(of_upload SourceFileUploadId)" --password - ${3:+--amount "$3"} --max-amount 1
}

show() {
  bucket=$1 key=$2
  echo "Status: $(of_upload Status)"
  $aws dealgate list-object-uploads --bucket "$bucket" --key "$key" --output text \
    --query 'Uploads[0].Upload.OfflineDeals[].[MinerFid, OnChainStatus, Status]' | while read -r deal; do echo "Deal: $deal"; done
  hash=$($aws dealgate get-payment-info --source-file-upload-id "$(of_upload SourceFileUploadId)" --query PayTxHash --output text)
  [ "$hash" = None ] || [ -z "$hash" ] ||
    $aws dealgate list-billing --tx-hash "$hash" --query 'Records[].[PayAmount, UnlockAmount]' --output text | {
      read -r paid unlocked
      printf 'Paid: %s\nUnlocked: %s\n' "$paid" "${unlocked:-0}"
    }
}

case "${1:-}" in
  wallet | store | pay | show) "$@" ;;
  *) sed -n '2,7s/^# //p' "$0"; exit 2 ;;
esac
