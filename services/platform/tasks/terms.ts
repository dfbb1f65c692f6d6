import { taskFields } from '../../../common/service-documents.js'
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
    curatedDataset: readText(fields, 'CuratedDataset', MAX_DATASET),
    description: readText(fields, 'Description', MAX_DESCRIPTION, true),
    isPublic: readFlag(fields, 'IsPublic'),
    type: readType(fields),
    minerId: readMiner(fields),
    minPrice: readPrice(fields, 'MinPrice'),
    maxPrice: readPrice(fields, 'MaxPrice'),
    tags: readTags(textOf(fields, 'Tags')),
    expireDays: readNumber(fields, 'ExpireDays', 1, MAX_DAYS),
    bidMode: readBidMode(fields, readFlag(fields, 'IsPublic')),
    fastRetrieval: readFlag(fields, 'FastRetrieval', true),
    sourceId: readNumber(fields, 'SourceId', 0, 1000),
    duration: readNumber(fields, 'Duration', MIN_DURATION, MAX_DURATION) ?? USUAL_DURATION,
  }
  refuseContradictions(terms)
  return terms
}

/** The UUID that the client chose for its task, if it did. Throws HttpError 400. */
export function readUuid(fields: Fields): string | undefined {
  const uuid = textOf(fields, 'Uuid').toLowerCase()
  if (uuid === '') return undefined
  if (!isUuid(uuid)) throw invalid('Uuid', 'must be a UUID')
  return uuid
}

function refuseContradictions({ isPublic, minerId, minPrice, maxPrice, bidMode }: TaskTerms): void {
  if (isPublic) {
    if (minerId !== null) {
      throw invalid('MinerId', 'contradicts is_public = 1: bids decide on the provider of a public task')
    }
  } else {
    if (minerId === null) throw invalid('MinerId', 'is missing: a private task (is_public = 0) names its provider')
    if (bidMode === 'auto') throw invalid('BidMode', 'contradicts is_public = 0: there are no bids on a private task')
  }
  if (minPrice !== null && maxPrice !== null && minPrice > maxPrice) {
    throw invalid('MinPrice', 'is above max_price')
  }
}

function readName(fields: Fields): string {
  const name = readText(fields, 'TaskName', MAX_NAME)
  if (name === '') throw invalid('TaskName', 'is missing')
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
  const type = textOf(fields, 'Type').toLowerCase()
  if (type === '') return null
  if (type !== 'regular' && type !== 'verified') throw invalid('Type', 'must be regular or verified')
  return type
}

function readMiner(fields: Fields): string | null {
  const minerId = textOf(fields, 'MinerId')
  if (minerId === '') return null
  if (!isMinerId(minerId)) throw invalid('MinerId', 'must be the id of a storage provider, such as t01000')
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
  const text = textOf(fields, 'BidMode')
  if (text === '') return isPublic ? 'manual' : 'none'
  const mode = /^[012]$/.test(text) ? BID_MODES[Number(text)] : undefined
  if (mode === undefined) throw invalid('BidMode', 'must be 0, 1 or 2')
  return mode
}

function invalid(member: Member, reason: string): HttpError {
  return new HttpError(400, `${spellings[member][0]} ${reason}.`)
}

/** Names of each member of a new task: as in `taskFields`, also with capitals: `Task_Name`, `Auto_bid`. */
export const spellings = Object.fromEntries(
  Object.entries(taskFields).map(([field, names]) => [
    field,
    [
      ...new Set(
        names.flatMap((name) => [name, name.replace(/(?:^|_)./g, (letter) => letter.toUpperCase()), capital(name)]),
      ),
    ],
  ]),
) as Record<Member, [string, ...string[]]>

function capital(name: string): string {
  return name.slice(0, 1).toUpperCase() + name.slice(1)
}

export type Member = keyof typeof taskFields

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
