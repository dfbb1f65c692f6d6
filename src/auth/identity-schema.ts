import { z } from 'zod'
import type { Identity, Right } from './caller.js'

/** Printable ASCII without the comma, which ends a component of the Authorization header. */
const ACCESS_KEY_ID = /^[!-+\--~]{3,128}$/
const PRINTABLE = /^[!-~]+$/
/** A name that a bucket can have, or the beginning of one with `*` behind it. */
const BUCKET = /^(?:[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]|(?:[a-z0-9][a-z0-9.-]{0,61})?\*)$/
/** `plugin:Name`, or the beginning of one with `*` behind it. */
const ACTION = /^(?:[a-z][a-z0-9-]{0,31}:[A-Za-z0-9]{0,100}\*|[a-z][a-z0-9-]{0,31}:[A-Za-z0-9]{1,100}|\*)$/
const MAX_ACTIONS = 1000
const MAX_PREFIX_BYTES = 1024
/** An identity's rights are looked through at every request. */
const MAX_RIGHTS = 1000

function text(error: string, fits: (value: string) => boolean) {
  return z.string({ error }).refine(fits, error)
}

/** An object with these keys and no other: a key misspelt must not widen what somebody may do. */
function exactly<Shape extends z.ZodRawShape>(shape: Shape) {
  return z.strictObject(shape, {
    error: (issue) =>
      issue.code === 'unrecognized_keys'
        ? `has unknown keys: ${issue.keys.join(', ')}; known are ${Object.keys(shape).join(', ')}`
        : 'must be an object',
  })
}

const right = exactly({
  bucket: text(
    'must be the name of a bucket; "*" at its end stands for any rest, "*" alone for every bucket',
    (value) => BUCKET.test(value),
  ),
  prefix: text(
    `must be text of at most ${MAX_PREFIX_BYTES} bytes`,
    (value) => value.isWellFormed() && Buffer.byteLength(value) <= MAX_PREFIX_BYTES,
  ).optional(),
  access: z.enum(['read', 'write', 'readwrite'], { error: 'must be read, write or readwrite' }),
}) satisfies z.ZodType<Right>

/** An identity as it stands in a file or in the options. Messages follow the name of what they are about, and never hold a secret. */
export const identitySchema = exactly({
  accessKeyId: text('must be 3 to 128 printable ASCII characters without space and comma', (value) =>
    ACCESS_KEY_ID.test(value),
  ),
  secretAccessKey: text(
    'must be 8 to 256 printable ASCII characters without space',
    (value) => PRINTABLE.test(value) && value.length >= 8 && value.length <= 256,
  ),
  account: exactly({
    accessKey: text('must be printable ASCII without space', (value) => PRINTABLE.test(value)),
    secretKey: text('must be printable ASCII without space', (value) => PRINTABLE.test(value)),
  }).optional(),
  rights: z
    .array(right, { error: 'must be a list' })
    .max(MAX_RIGHTS, { error: `can hold at most ${MAX_RIGHTS} rights` })
    .optional(),
  actions: z
    .array(
      text(
        'must be an action such as deal:CreateObjectDeal; "*" at its end stands for any rest, "*" alone for all',
        (value) => ACTION.test(value),
      ),
      { error: 'must be a list' },
    )
    .max(MAX_ACTIONS, { error: `can hold at most ${MAX_ACTIONS} actions` })
    .optional(),
}).refine(({ rights, actions }) => actions === undefined || rights !== undefined, {
  path: ['actions'],
  error: 'goes with rights: an identity without them may do everything',
}) satisfies z.ZodType<Identity>

/** Where an issue lies, as one would write it in JavaScript: `[2].rights[0].bucket`. */
export function placeOf(path: readonly PropertyKey[]): string {
  return path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`)).join('')
}
