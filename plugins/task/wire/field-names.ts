/**
 * Fields that requests to the task platform have, and the names under which clients of such platforms send them. Some
 * deployments read one spelling and some another, so that all of them are sent.
 */
const SPELLINGS = {
  Email: ['email'],
  Password: ['password'],
  KeyName: ['key_name'],
  ApiKey: ['apikey'],
  AccessToken: ['access_token'],
  TaskName: ['task_name'],
  CuratedDataset: ['curated_dataset'],
  Description: ['description'],
  IsPublic: ['is_public'],
  Type: ['type', 'verified_type'],
  MinerId: ['miner_id'],
  MinPrice: ['min_price'],
  MaxPrice: ['max_price'],
  Tags: ['tags'],
  ExpireDays: ['expire_days', 'expired_days'],
  BidMode: ['bid_mode', 'auto_bid'],
  FastRetrieval: ['fast_retrieval'],
  SourceId: ['source_id'],
  Duration: ['duration'],
  Uuid: ['uuid'],
  File: ['file'],
} as const

export type FieldName = keyof typeof SPELLINGS
export const FIELD_NAMES = Object.keys(SPELLINGS) as [FieldName, ...FieldName[]]

/** Fields of a request as name and value, in every spelling, or in the configured one. Leaves out undefined values. */
export function spelled(
  values: Partial<Record<FieldName, string | undefined>>,
  configured: Partial<Record<FieldName, string | undefined>>,
): [name: string, value: string][] {
  return FIELD_NAMES.flatMap((field) => {
    const value = values[field]
    return value === undefined ? [] : namesOf(field, configured).map((name): [string, string] => [name, value])
  })
}

/** Names of a field on the wire. */
export function namesOf(
  field: FieldName,
  configured: Partial<Record<FieldName, string | undefined>>,
): readonly string[] {
  const own = configured[field]
  return own === undefined ? SPELLINGS[field] : [own]
}
