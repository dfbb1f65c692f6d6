/** Capabilities beyond the specification. web.ServerInfo advertises them, because clients rely on them. */
export const features = [
  'paged-listing',
  'object-head',
  'exact-remove',
  'any-key',
  'deal-tokens',
  'deal-status',
  'deal-providers',
  'deal-eviction',
  'deal-verification',
  'deal-list',
  'offline-deals',
  'fixed-creation-date',
  'network-control',
  'write-fences',
  'state-epoch',
  'upload-quota',
  'bucket-quota',
  'bucket-numbers',
  'object-records',
  'object-checksums',
  'versions',
  'locks',
] as const

export type Feature = (typeof features)[number]
