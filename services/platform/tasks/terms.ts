import { z } from 'zod'
import { taskFields } from '../../../common/service-documents.js'
import { HttpError } from '../../http/errors.js'
import { optional } from '../../rest/schemas.js'
import type { Texts } from '../body.js'
import { isMinerId, isUuid } from '../ids.js'
import { parsed } from '../parsed.js'
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

/** A text of a bounded length without control characters; '' when it is absent. */
function line(name: string, most: number, manyLines = false) {
  return z
    .string()
    .default('')
    .refine((text) => [...text].length <= most, { error: `${name} may have at most ${most} characters.`, abort: true })
    .refine((text) => !/\p{Cc}/u.test(manyLines ? text.replace(/[\r\n\t]/g, '') : text), {
      error: `${name} has control characters.`,
    })
    .describe(`At most ${most} characters.`)
}

function flag(name: string) {
  const read = (text: string): boolean | undefined => {
    const lower = text.toLowerCase()
    return lower === '1' || lower === 'true' ? true : lower === '0' || lower === 'false' ? false : undefined
  }
  return optional(read, `${name} must be 1 or 0.`).describe('1 or 0.')
}

function price(name: string) {
  return optional(
    parsePrice,
    `${name} must be a decimal number of fil per GiB and epoch, with at most 18 decimals.`,
  ).describe('Decimal: fil per GiB and epoch.')
}

function number(name: string, least: number, most: number) {
  const read = (text: string): number | undefined => {
    const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
    return value >= least && value <= most ? value : undefined
  }
  return optional(read, `${name} must be a whole number from ${least} to ${most}.`).describe(`${least} to ${most}.`)
}

const TYPES = ['regular', 'verified'] as const

const MAX_TAGS = 5
const MAX_TAG = 14

/** A comma-separated list of tags, without empty and repeated ones. */
export const tagList = z
  .string()
  .transform((text) => [...new Set(text.split(',').map((tag) => tag.trim()))].filter((tag) => tag !== ''))
  .refine((tags) => tags.length <= MAX_TAGS, { error: `tags: a task has at most ${MAX_TAGS} tags.`, abort: true })
  .refine((tags) => tags.every((tag) => [...tag].length <= MAX_TAG && !/\p{Cc}/u.test(tag)), {
    error: `tags: a tag has at most ${MAX_TAG} characters, and no control characters.`,
  })

/** The fields of a new task, by the first spelling of their names. */
export const taskForm = {
  task_name: line('task_name', MAX_NAME).refine((text) => text !== '', { error: 'task_name is missing.' }),
  curated_dataset: line('curated_dataset', MAX_DATASET),
  description: line('description', MAX_DESCRIPTION, true),
  is_public: flag('is_public').transform((value, context) => {
    if (value === undefined) context.addIssue({ code: 'custom', message: 'is_public is missing: send 1 or 0.' })
    return value ?? z.NEVER
  }),
  type: optional(
    (text) => TYPES.find((type) => type === text.toLowerCase()),
    'type must be regular or verified.',
  ).describe('regular or verified.'),
  miner_id: optional(
    (text) => (isMinerId(text) ? text : undefined),
    'miner_id must be the id of a storage provider, such as t01000.',
  ),
  min_price: price('min_price'),
  max_price: price('max_price'),
  tags: z.string().default('').pipe(tagList).describe('At most 5, separated by commas.'),
  expire_days: number('expire_days', 1, MAX_DAYS),
  bid_mode: optional(
    (text) => (/^[012]$/.test(text) ? BID_MODES[Number(text)] : undefined),
    'bid_mode must be 0, 1 or 2.',
  ).describe('0, 1 or 2.'),
  fast_retrieval: flag('fast_retrieval'),
  source_id: number('source_id', 0, 1000),
  duration: number('duration', MIN_DURATION, MAX_DURATION),
  uuid: optional(
    (text) => (isUuid(text.toLowerCase()) ? text.toLowerCase() : undefined),
    'uuid must be a UUID.',
  ).describe('UUID of the task: a repeated request with it is the same task.'),
}

type TaskForm = z.output<z.ZodObject<typeof taskForm>>

/** The terms of a new task. Throws HttpError 400 for those that contradict each other. */
export function termsOf(form: Omit<TaskForm, 'uuid'>): TaskTerms {
  const terms: TaskTerms = {
    name: form.task_name,
    curatedDataset: form.curated_dataset,
    description: form.description,
    isPublic: form.is_public,
    type: form.type ?? null,
    minerId: form.miner_id ?? null,
    minPrice: form.min_price ?? null,
    maxPrice: form.max_price ?? null,
    tags: form.tags,
    expireDays: form.expire_days ?? null,
    // Clients older than bid modes post public tasks without one, and choose the provider themselves.
    bidMode: form.bid_mode ?? (form.is_public ? 'manual' : 'none'),
    fastRetrieval: form.fast_retrieval ?? true,
    sourceId: form.source_id ?? null,
    duration: form.duration ?? USUAL_DURATION,
  }
  refuseContradictions(terms)
  return terms
}

/**
 * Reads the terms of a new task from its form. Throws HttpError 400 whose message names the field and says what to
 * send, also for terms that contradict each other.
 */
export function readTerms(texts: Texts): TaskTerms {
  return termsOf(parsed(z.object(taskForm), respelled(texts)))
}

function refuseContradictions({ isPublic, minerId, minPrice, maxPrice, bidMode }: TaskTerms): void {
  const refuse = (message: string): never => {
    throw new HttpError(400, message)
  }
  if (isPublic) {
    if (minerId !== null) {
      refuse('miner_id contradicts is_public = 1: bids decide on the provider of a public task.')
    }
  } else {
    if (minerId === null) refuse('miner_id is missing: a private task (is_public = 0) names its provider.')
    if (bidMode === 'auto') refuse('bid_mode contradicts is_public = 0: there are no bids on a private task.')
  }
  if (minPrice !== null && maxPrice !== null && minPrice > maxPrice) refuse('min_price is above max_price.')
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
 * The fields by the first spelling of their names, without spaces around them; those that are empty are absent. Throws
 * HttpError 400 when two spellings contradict each other.
 */
export function respelled(texts: Texts): Texts {
  const members = Object.values(spellings).flatMap((names) => {
    const given = names.filter((name) => (texts[name] ?? '').trim() !== '')
    const [text, another] = new Set(given.map((name) => (texts[name] as string).trim()))
    if (another !== undefined) {
      throw new HttpError(400, `${given.join(' and ')} contradict each other: send one of them.`)
    }
    return text === undefined ? [] : [[names[0], text] as const]
  })
  return Object.fromEntries(members)
}
