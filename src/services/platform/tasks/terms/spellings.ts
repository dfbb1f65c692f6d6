import { PlatformError } from '../../errors.js'
import type { Fields } from '../../http/fields.js'

/** Names of each member of a new task. Clients and gateways spell some of them differently. */
export const spellings = {
  name: ['task_name', 'Task_Name'],
  curatedDataset: ['curated_dataset', 'Curated_Dataset'],
  description: ['description', 'Description'],
  isPublic: ['is_public', 'Is_Public'],
  type: ['type', 'verified_type', 'Type'],
  minerId: ['miner_id', 'Miner_Id'],
  minPrice: ['min_price', 'Min_Price'],
  maxPrice: ['max_price', 'Max_Price'],
  tags: ['tags', 'Tags'],
  expireDays: ['expire_days', 'expired_days', 'Expire_Days'],
  bidMode: ['bid_mode', 'auto_bid', 'Auto_bid'],
  fastRetrieval: ['fast_retrieval', 'Fast_Retrieval'],
  sourceId: ['source_id', 'Source_Id'],
  duration: ['duration', 'Duration'],
  uuid: ['uuid'],
} as const satisfies Record<string, readonly string[]>

export type Member = keyof typeof spellings

/**
 * The text of a member, in any of its spellings, without spaces around it; '' when it is absent. Throws PlatformError
 * 400 when two spellings contradict each other.
 */
export function textOf(fields: Fields, member: Member): string {
  const given = spellings[member].filter((name) => (fields.get(name) ?? '').trim() !== '')
  const texts = given.map((name) => (fields.get(name) as string).trim())
  if (new Set(texts).size > 1) {
    throw new PlatformError(400, `${given.join(' and ')} contradict each other: send one of them.`)
  }
  return texts[0] ?? ''
}
