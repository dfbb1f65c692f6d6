/**
 * Query keys that name a sub-resource or select a variant of an S3 operation. A key that the selected operation does
 * not declare is refused, even with a value and even on GET; other `name=value` pairs are ignored on GET, as in S3.
 * Source: the request syntax of all operations in
 * https://docs.aws.amazon.com/AmazonS3/latest/API/API_Operations_Amazon_Simple_Storage_Service.html
 */
const SUBRESOURCES = new Set([
  'abac',
  'accelerate',
  'acl',
  'analytics',
  'annotation',
  'attributes',
  'cors',
  'delete',
  'encryption',
  'intelligent-tiering',
  'inventory',
  'legal-hold',
  'lifecycle',
  'list-type',
  'location',
  'logging',
  'metadataAnnotationTable',
  'metadataConfiguration',
  'metadataInventoryTable',
  'metadataJournalTable',
  'metadataTable',
  'metrics',
  'notification',
  'object-lock',
  'ownershipControls',
  'partNumber',
  'policy',
  'policyStatus',
  'publicAccessBlock',
  'renameObject',
  'replication',
  'requestPayment',
  'restore',
  'retention',
  'select',
  'select-type',
  'session',
  'tagging',
  'torrent',
  'uploadId',
  'uploads',
  'versionId',
  'versioning',
  'versions',
  'website',
  'events',
])

export function isSubresource(name: string): boolean {
  return SUBRESOURCES.has(name)
}
