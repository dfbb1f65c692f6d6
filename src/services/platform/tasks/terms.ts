import { HttpError } from '../../http/errors.js'
import { isMinerId, isUuid } from '../csv.js'
import type { Fields } from '../fields.js'
import { parsePrice } from '../units.js'
import type { BidMode, TaskTerms } from './task.js'

const MAX_NAME = 128
const MAX_DATASET = 256
const MAX_DESCRIPTION = 4096
const MAX_DAYS = 3650

/** Durations that clients of the network use, epochs: half a year to a year and a half. */
const MIN_DURATION = 518_400
const MAX_DURATION = 1_555_200
const USUAL_DURATION = 1_512_000

const BID_MODES: readonly BidMode[] = ['manual', 'auto', 'none']

/**
 * Reads the terms of a new task from its form. Throws HttpError 400 whose message names the field and says what to
 * send, also for terms that contradict each other.
 */
export function readTerms(fields: Fields): TaskTerms {
  const terms: TaskTerms = {
    name: readName(fields),
    curatedDataset: readText(fields, 'curatedDataset', MAX_DATASET),
    description: readText(fields, 'description', MAX_DESCRIPTION, true),
    isPublic: readFlag(fields, 'isPublic'),
    type: readType(fields),
    minerId: readMiner(fields),
    minPrice: readPrice(fields, 'minPrice'),
    maxPrice: readPrice(fields, 'maxPrice'),
    tags: readTags(textOf(fields, 'tags')),
    expireDays: readNumber(fields, 'expireDays', 1, MAX_DAYS),
    bidMode: readBidMode(fields, readFlag(fields, 'isPublic')),
    fastRetrieval: readFlag(fields, 'fastRetrieval', true),
    sourceId: readNumber(fields, 'sourceId', 0, 1000),
    duration: readNumber(fields, 'duration', MIN_DURATION, MAX_DURATION) ?? USUAL_DURATION,
  }
  refuseContradictions(terms)
  return terms
}

/** The UUID that the client chose for its task, if it did. Throws HttpError 400. */
export function readUuid(fields: Fields): string | undefined {
  const uuid = textOf(fields, 'uuid').toLowerCase()
  if (uuid === '') return undefined
  if (!isUuid(uuid)) throw invalid('uuid', 'must be a UUID')
  return uuid
}

function refuseContradictions({ isPublic, minerId, minPrice, maxPrice, bidMode }: TaskTerms): void {
  if (isPublic) {
    if (minerId !== null) {
      throw invalid('minerId', 'contradicts is_public = 1: bids decide on the provider of a public task')
    }
  } else {
    if (minerId === null) throw invalid('minerId', 'is missing: a private task (is_public = 0) names its provider')
    if (bidMode === 'auto') throw invalid('bidMode', 'contradicts is_public = 0: there are no bids on a private task')
  }
  if (minPrice !== null && maxPrice !== null && minPrice > maxPrice) {
    throw invalid('minPrice', 'is above max_price')
  }
}

function readName(fields: Fields): string {
  const name = readText(fields, 'name', MAX_NAME)
  if (name === '') throw invalid('name', 'is missing')
  return name
}

function readText(fields: Fields, member: Member, most: number, manyLines = false): string {
  const text = textOf(fields, member)
  if ([...text].length > most) throw invalid(member, `may have at most ${most} characters`)
  if (/\p{Cc}/u.test(manyLines ? text.replace(/[\r\n\t]/g, '') : text)) {
    throw invalid(member, 'has control characters')
  }
  return text
}

/** @param absent default; a member without one is mandatory */
function readFlag(fields: Fields, member: Member, absent?: boolean): boolean {
  const text = textOf(fields, member).toLowerCase()
  if (text === '' && absent !== undefined) return absent
  if (text === '1' || text === 'true') return true
  if (text === '0' || text === 'false') return false
  throw invalid(member, text === '' ? 'is missing: send 1 or 0' : 'must be 1 or 0')
}

function readType(fields: Fields): TaskTerms['type'] {
  const type = textOf(fields, 'type').toLowerCase()
  if (type === '') return null
  if (type !== 'regular' && type !== 'verified') throw invalid('type', 'must be regular or verified')
  return type
}

function readMiner(fields: Fields): string | null {
  const minerId = textOf(fields, 'minerId')
  if (minerId === '') return null
  if (!isMinerId(minerId)) throw invalid('minerId', 'must be the id of a storage provider, such as t01000')
  return minerId
}

function readPrice(fields: Fields, member: Member): bigint | null {
  const text = textOf(fields, member)
  if (text === '') return null
  const price = parsePrice(text)
  if (price === undefined) {
    throw invalid(member, 'must be a decimal number of fil per GiB and epoch, with at most 18 decimals')
  }
  return price
}

function readNumber(fields: Fields, member: Member, least: number, most: number): number | null {
  const text = textOf(fields, member)
  if (text === '') return null
  const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
  if (value >= least && value <= most) return value
  throw invalid(member, `must be a whole number from ${least} to ${most}`)
}

/** Clients older than bid modes post public tasks without one, and choose the provider themselves. */
function readBidMode(fields: Fields, isPublic: boolean): BidMode {
  const text = textOf(fields, 'bidMode')
  if (text === '') return isPublic ? 'manual' : 'none'
  const mode = /^[012]$/.test(text) ? BID_MODES[Number(text)] : undefined
  if (mode === undefined) throw invalid('bidMode', 'must be 0, 1 or 2')
  return mode
}

function invalid(member: Member, reason: string): HttpError {
  return new HttpError(400, `${spellings[member][0]} ${reason}.`)
}

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
 * The text of a member, in any of its spellings, without spaces around it; '' when it is absent. Throws HttpError
 * 400 when two spellings contradict each other.
 */
function textOf(fields: Fields, member: Member): string {
  const given = spellings[member].filter((name) => (fields.get(name) ?? '').trim() !== '')
  const texts = given.map((name) => (fields.get(name) as string).trim())
  if (new Set(texts).size > 1) {
    throw new HttpError(400, `${given.join(' and ')} contradict each other: send one of them.`)
  }
  return texts[0] ?? ''
}

const MAX_TAGS = 5
const MAX_TAG = 14

/** Reads a comma-separated list of tags, without empty and repeated ones. Throws HttpError 400. */
export function readTags(text: string): string[] {
  const tags = [...new Set(text.split(',').map((tag) => tag.trim()))].filter((tag) => tag !== '')
  if (tags.length > MAX_TAGS) throw new HttpError(400, `tags: a task has at most ${MAX_TAGS} tags.`)
  for (const tag of tags) {
    if ([...tag].length > MAX_TAG || /\p{Cc}/u.test(tag)) {
      throw new HttpError(400, `tags: a tag has at most ${MAX_TAG} characters, and no control characters.`)
    }
  }
  return tags
}
