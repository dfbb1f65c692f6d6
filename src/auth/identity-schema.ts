import { z } from 'zod'
import { isRecord } from '../../common/json.js'
import type { Identity, Right } from '../api/identity.js'

/** Printable ASCII without commas, which separate the components of the Authorization header. */
const ACCESS_KEY_ID = /^[!-+\--~]{3,128}$/
const PRINTABLE = /^[!-~]+$/
/** A valid bucket name, or a prefix of one followed by `*`. */
const BUCKET = /^(?:[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]|(?:[a-z0-9][a-z0-9.-]{0,61})?\*)$/
/** `plugin:Name`, or a prefix of it followed by `*`. */
const ACTION = /^(?:[a-z][a-z0-9-]{0,31}:[A-Za-z0-9]{0,100}\*|[a-z][a-z0-9-]{0,31}:[A-Za-z0-9]{1,100}|\*)$/
const MAX_ACTIONS = 1000
const MAX_PREFIX_BYTES = 1024
const MAX_POLICIES = 20
/** Every request searches the identity's rights. */
const MAX_RIGHTS = 1000

function text(error: string, fits: (value: string) => boolean) {
  return z.string({ error }).refine(fits, error)
}

/** An object with exactly these keys: a misspelt key must not grant more access than intended. */
function exactly<Shape extends z.ZodRawShape>(shape: Shape) {
  return z.strictObject(shape, {
    error: (issue) =>
      issue.code === 'unrecognized_keys'
        ? `has unknown keys: ${issue.keys.join(', ')}; known are ${Object.keys(shape).join(', ')}`
        : 'must be an object',
  })
}

const right = exactly({
  bucket: text('must be a bucket name; a final "*" matches any suffix, "*" alone every bucket', (value) =>
    BUCKET.test(value),
  ),
  prefix: text(
    `must be text of at most ${MAX_PREFIX_BYTES} bytes`,
    (value) => value.isWellFormed() && Buffer.byteLength(value) <= MAX_PREFIX_BYTES,
  ).optional(),
  access: z.enum(['read', 'write', 'readwrite'], { error: 'must be read, write or readwrite' }),
}) satisfies z.ZodType<Right>

/** Returns what is wrong with a policy of an identity; undefined if nothing is. */
export type PolicyProblem = (document: unknown) => string | undefined

/** Returns what is wrong with the policies of an identity, with their places: `.policies[0]: ...`. */
export function policyProblems({ policies = [] }: Identity, problemOf: PolicyProblem): string[] {
  return policies.flatMap((document, i) => {
    const problem = problemOf(document)
    return problem === undefined ? [] : [`.policies[${i}]: ${problem}`]
  })
}

/** An identity in a file or in the options. Messages follow the path of the invalid member; none contains a secret. */
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
        'must be an action such as deal:CreateObjectDeal; a final "*" matches any suffix, "*" alone every action',
        (value) => ACTION.test(value),
      ),
      { error: 'must be a list' },
    )
    .max(MAX_ACTIONS, { error: `can hold at most ${MAX_ACTIONS} actions` })
    .optional(),
  // `z.record` would drop a member named __proto__ instead of letting the policy be refused.
  policies: z
    .array(z.custom<Readonly<Record<string, unknown>>>(isRecord, { error: 'must be a policy document' }), {
      error: 'must be a list of policy documents',
    })
    .max(MAX_POLICIES, { error: `can hold at most ${MAX_POLICIES} policies` })
    .optional(),
}).refine(({ rights, actions }) => actions === undefined || rights !== undefined, {
  path: ['actions'],
  error: 'requires rights: an identity without rights may do everything',
}) satisfies z.ZodType<Identity>

/** The path of an issue as a JavaScript expression: `[2].rights[0].bucket`. */
export function placeOf(path: readonly PropertyKey[]): string {
  return path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`)).join('')
}
