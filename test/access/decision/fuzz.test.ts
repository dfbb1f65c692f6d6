import t from 'tap'
import { type Documents, decide } from '../../../src/access/decide.js'
import { isPublic, type Policy, parsePolicy } from '../../../src/access/policy.js'
import type { Question } from '../../../src/access/question.js'
import type { Acl, Grantee, Group, Ownership } from '../../../src/api/access.js'
import { S3Error } from '../../../src/common/errors/s3-error.js'
import { Random } from '../../fuzz/random.js'
import { BUCKET, randomPolicy, randomQuestion, randomWorld } from './random-world.js'
import { type SlowQuestion, type SlowWorld, slowDecide, slowIsPublic } from './slow-evaluator.js'

/** DEALGATE_FUZZ_ROUNDS and DEALGATE_FUZZ_SEED change the worlds; a failure names its seed. */
const WORLDS = Number(process.env.DEALGATE_FUZZ_ROUNDS ?? 1000)
const SEED = Number(process.env.DEALGATE_FUZZ_SEED ?? 1)
const QUESTIONS = 4

const parse = (text: string, kind: 'bucket' | 'identity'): Policy =>
  parsePolicy(text, kind === 'bucket' ? { kind, bucket: BUCKET } : { kind })

function aclOf(acl: SlowWorld['objectAcl']): Acl | undefined {
  if (!acl) return undefined
  const granteeOf = (to: string): Grantee => (to.length === 64 ? { id: to } : { group: to as Group })
  const grants = acl.grants.map(({ to, permission }) => ({ grantee: granteeOf(to), permission: permission as 'READ' }))
  return { owner: acl.owner, grants }
}

function documentsOf(world: SlowWorld): Documents {
  const { owner, policy, identityPolicies, sessionPolicy, bucketAcl, objectAcl, ownership } = world
  return {
    owner,
    policy: policy === undefined ? undefined : parse(policy, 'bucket'),
    identityPolicies: identityPolicies?.map((text) => parse(text, 'identity')),
    sessionPolicy: sessionPolicy === undefined ? undefined : parse(sessionPolicy, 'identity'),
    bucketAcl: aclOf(bucketAcl),
    objectAcl: aclOf(objectAcl),
    ownership: ownership as Ownership,
    block: {
      ignorePublicAcls: world.ignorePublicAcls,
      restrictPublicBuckets: world.restrictPublicBuckets,
    },
  }
}

function questionOf({ account, user, action, resource, context }: SlowQuestion): Question {
  return {
    principal:
      account === undefined
        ? { kind: 'anonymous' }
        : { kind: 'account', account, ...(user !== undefined && { arn: user }) },
    action,
    resource,
    conditions: {
      get: (key) => context[key],
      keys: (prefix) => Object.keys(context).filter((key) => key.startsWith(prefix)),
    },
  }
}

t.test('decisions equal those of the slow evaluator', async (t) => {
  const random = new Random(SEED)
  const tally: Record<string, number> = { allow: 0, 'explicit deny': 0, 'implicit deny': 0, public: 0, refused: 0 }
  const count = (name: string) => (tally[name] = (tally[name] ?? 0) + 1)
  const accepted = (kind: 'bucket' | 'identity'): string => {
    for (;;) {
      const text = randomPolicy(random, kind)
      try {
        parse(text, kind)
        return text
      } catch (error) {
        if (!(error instanceof S3Error) || error.code !== 'MalformedPolicy') throw error
        count('refused')
      }
    }
  }
  const different: object[] = []
  for (let left = WORLDS; left > 0 && different.length < 3; left--) {
    const world = randomWorld(random, accepted)
    const documents = documentsOf(world)
    if (documents.policy) {
      const [fast, slow] = [isPublic(documents.policy), slowIsPublic(world.policy)]
      if (fast) count('public')
      if (fast !== slow) different.push({ fast, slow, policy: world.policy })
    }
    for (let question = 0; question < QUESTIONS; question++) {
      const asked = randomQuestion(random)
      const { outcome, reason } = decide(questionOf(asked), documents)
      const slow = slowDecide(asked, world)
      count(outcome)
      if (outcome !== slow) different.push({ fast: outcome, reason, slow, asked, world })
    }
  }
  t.same(different, [], `with DEALGATE_FUZZ_SEED=${SEED}`)
  t.comment(`seed ${SEED}: ${JSON.stringify(tally)}`)
  for (const name of ['allow', 'explicit deny', 'implicit deny', 'public'])
    t.ok((tally[name] ?? 0) > WORLDS / 50, `${name} occurs: ${tally[name]} times`)
})

t.test('mutated policies are accepted or MalformedPolicy', async (t) => {
  const random = new Random(SEED + 1)
  const pieces = [
    '"',
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '*',
    '${',
    '}',
    '\\',
    '"Effect"',
    'null',
    '0',
    'Not',
    'arn:',
    '\u0000',
    '😀',
  ]
  const others = new Set<string>()
  let refused = 0
  for (let left = WORLDS; left > 0; left--) {
    const text = randomPolicy(random, 'bucket')
    const at = random.below(text.length)
    const end = random.chance(0.5) ? at : at + random.below(9)
    const mutated = text.slice(0, at) + (random.chance(0.7) ? random.of(pieces) : '') + text.slice(end)
    try {
      const policy = parse(mutated, 'bucket')
      isPublic(policy)
    } catch (error) {
      refused++
      if (!(error instanceof S3Error) || error.code !== 'MalformedPolicy') others.add(`${mutated}: ${error}`)
    }
  }
  t.same([...others], [], `with DEALGATE_FUZZ_SEED=${SEED}`)
  t.ok(refused > 0 && refused < WORLDS, `${refused} of ${WORLDS} are refused`)
})
