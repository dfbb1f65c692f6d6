import {
  hasLoneSurrogate,
  type Identity,
  identitySchema,
  type PolicyProblem,
  placeOf,
  policyProblems,
  repeatedName,
  S3Error,
  z,
} from 'dealgate/plugin'

/** One right in a request and in an answer. */
const right = z.strictObject({
  Bucket: z.string().describe('A name, the beginning of names followed by `*`, or `*`.'),
  Prefix: z.string().optional().describe('The beginning of keys. Default: every key.'),
  Access: z.enum(['read', 'write', 'readwrite']),
})

/** What a key pair may do. */
const mayDo = {
  Rights: z
    .array(right)
    .meta({ element: 'Right' })
    .optional()
    .describe('What the key pair may do in buckets. Without it: all that its account may.'),
  Actions: z
    .array(z.string())
    .meta({ element: 'Action' })
    .optional()
    .describe('Calls of plugins that a key pair with `Rights` may make: `deal:CreateObjectDeal`, `pay:*`.'),
  Policies: z
    .array(z.string())
    .meta({ element: 'Policy' })
    .optional()
    .describe('Policy documents as JSON text: the key pair may do only what they allow, too.'),
}

/** What a request says of the rights of a key pair. */
export const asks = {
  ...mayDo,
  All: z
    .boolean()
    .optional()
    .describe('Needed, as true, without `Rights` and `Policies`: the key pair may do all that its account may.'),
}

/** What answers say of a key pair. */
export const keyFacts = {
  AccessKeyId: z.string(),
  Account: z.string().optional().describe('Access key of its account at the gateway; absent for that of the server.'),
  ...mayDo,
}

interface RightsRequest {
  readonly Rights?: readonly z.output<typeof right>[] | undefined
  readonly Actions?: readonly string[] | undefined
  readonly Policies?: readonly string[] | undefined
  readonly All?: boolean | undefined
}

/**
 * What a request asks for, as members of the schema of identities, which `checked` applies. What is missing must not
 * give all rights: a client that sends no body, or null, may have meant to limit the key pair. Throws InvalidArgument.
 */
export function asked({ Rights, Actions, Policies, All }: RightsRequest): object {
  const isLimited = Rights !== undefined || (Policies !== undefined && Policies.length > 0)
  if ((!isLimited && All !== true) || (Rights !== undefined && All === true)) {
    throw new S3Error('InvalidArgument', {
      message:
        'Send Rights or Policies, or All as true for all that the account may; All and Rights exclude each other.',
      fields: { ArgumentName: 'Rights' },
    })
  }
  return {
    ...(Rights && {
      rights: Rights.map(({ Bucket, Prefix, Access }) => ({
        bucket: Bucket,
        ...(Prefix && { prefix: Prefix }),
        access: Access,
      })),
    }),
    ...(Actions && Actions.length > 0 && { actions: Actions }),
    ...(Policies && Policies.length > 0 && { policies: Policies.map(parsed) }),
  }
}

function parsed(text: string): unknown {
  const refuse = (message: string): never => {
    throw new S3Error('InvalidArgument', { message, fields: { ArgumentName: 'Policies' } })
  }
  let document: unknown
  try {
    document = JSON.parse(text)
  } catch {
    refuse('A policy is not JSON.')
  }
  if (hasLoneSurrogate(text)) refuse('A policy has an escape that is no Unicode character.')
  // JSON.parse takes the last one of two members of one name, which may allow what the first one denies.
  const name = repeatedName(text)
  return name === undefined ? document : refuse(`A policy has the member ${JSON.stringify(name)} twice in one object.`)
}

/**
 * The key pair that a request describes. Throws InvalidArgument.
 * @param given members of an identity, not checked yet
 */
export function checked(given: object, policyProblem: PolicyProblem): Identity {
  const result = identitySchema.safeParse(given)
  const problems = result.success
    ? policyProblems(result.data, policyProblem)
    : result.error.issues.map(({ path, message }) => `${placeOf(path)} ${message}`)
  if (result.success && problems.length === 0) return result.data
  throw new S3Error('InvalidArgument', { message: `The key pair is not valid: ${problems.join('; ').slice(1)}.` })
}

/** A key pair as answers show it: without its secret. */
export function shown({ accessKeyId, account, rights, actions, policies }: Identity) {
  return {
    AccessKeyId: accessKeyId,
    ...(account && { Account: account.accessKey }),
    ...(rights && {
      Rights: rights.map(({ bucket, prefix, access }) => ({
        Bucket: bucket,
        ...(prefix !== undefined && { Prefix: prefix }),
        Access: access,
      })),
    }),
    ...(actions && { Actions: [...actions] }),
    ...(policies && { Policies: policies.map((policy) => JSON.stringify(policy)) }),
  }
}

/** Most words about a key pair that a list of changes has. */
const MAX_WORDS = 20

/** What a key pair may do, in short: buckets and actions. */
export function mayWords({ rights, actions = [], policies = [] }: Identity): string[] {
  const words = [
    ...(rights ? rights.map(({ access, bucket }) => `${access}:${bucket}`) : ['all']),
    ...actions,
    ...(policies.length > 0 ? [`policies:${policies.length}`] : []),
  ]
  if (words.length === 0) return ['none']
  return words.length > MAX_WORDS ? [...words.slice(0, MAX_WORDS), '…'] : words
}
