// biome-ignore-all lint/suspicious/noTemplateCurlyInString: policy variables look like this
import t from 'tap'
import type { S3Error } from '../../../../common/errors/s3-error.js'
import { parsePolicy } from '../../../../src/access/policy.js'
import { Random } from '../../../fuzz/random.js'
import { ARN, allow, BUCKET, deny, document, refusal } from './ask.js'

const GET = allow('s3:GetObject', `${ARN}/*`)
const when = (Condition: unknown) => ({ Condition })
const INVALID = 'Policy has an invalid condition value'

/** A document, or what is wrong in a statement, and the beginning of the message that refuses it. */
const cases: readonly [string, string | object, string][] = [
  ['no JSON', '{', 'Policies must be valid JSON'],
  ['not an object', '[]', 'Policies must be valid JSON'],
  ['too large', { Sid: 'x'.repeat(20 * 1024) }, 'Policy is too large'],
  ['no Statement', '{"Version":"2012-10-17"}', 'Missing required field Statement'],
  ['no statements', '{"Statement":[]}', 'Policy has no statement'],
  ['a statement that is no object', '{"Statement":["x"]}', 'Policy has an invalid statement: x'],
  [
    'unknown version',
    JSON.stringify({ Version: '2020-01-01', Statement: [GET] }),
    'The policy must contain a valid version',
  ],
  ['unknown member', JSON.stringify({ version: '2012-10-17', Statement: [GET] }), 'Unknown field: version'],
  ['unknown member of a statement', { Actions: 'x' }, 'Unknown field: Actions in statement 1'],
  ['duplicate member', '{"Statement":[],"Statement":[]}', 'Duplicate field: Statement'],
  ['duplicate member by escape', '{"Id":"a","\\u0049d":"b"}', 'Duplicate field: Id'],
  ['__proto__', `{"Statement":[{"__proto__":{}}]}`, 'Unknown field: __proto__'],
  ['no Effect', { Effect: undefined }, 'Missing required field Effect'],
  ['unknown Effect', { Effect: 'allow' }, 'Invalid effect: allow in statement 1'],
  ['both principals', { NotPrincipal: '*' }, 'Statement has both Principal and NotPrincipal'],
  ['unknown principal', { Principal: 'me' }, 'Invalid principal in policy: me'],
  ['principal of a service', { Principal: { Service: 's3.amazonaws.com' } }, 'Invalid principal in policy'],
  ['empty principal', { Principal: {} }, 'Invalid principal in policy'],
  ['wildcard in a principal', { Principal: { AWS: `arn:aws:iam::${'a'.repeat(64)}:user/*` } }, 'Invalid principal'],
  ['role', { Principal: { AWS: `arn:aws:iam::${'a'.repeat(64)}:role/r` } }, 'Invalid principal'],
  ['both actions', { NotAction: 's3:GetObject' }, 'Statement has both Action and NotAction'],
  ['no actions', { Action: [] }, 'Policy has no action'],
  ['unknown action', { Action: 's3:Nothing' }, 'Policy has invalid action: s3:Nothing'],
  ['action without a service', { Action: 'GetObject' }, 'Policy has invalid action'],
  ['wildcard in the service', { Action: 's*:GetObject' }, 'Policy has invalid action'],
  ['action of the service', { Action: 's3:ListAllMyBuckets' }, 'Action does not apply to any resource'],
  ['action on jobs', { Action: 's3:CreateJob', Resource: '*' }, 'Action does not apply to any resource'],
  ['bucket action on objects', { Action: 's3:ListBucket' }, 'Action does not apply to any resource'],
  ['object action on the bucket', { Resource: ARN }, 'Action does not apply to any resource'],
  ['both resources', { NotResource: ARN }, 'Statement has both Resource and NotResource'],
  ['resource of another bucket', { Resource: 'arn:aws:s3:::other/*' }, 'Policy has invalid resource'],
  ['resource of another service', { Resource: 'arn:aws:sqs:::photos/*' }, 'Policy has invalid resource'],
  ['unclosed variable', { Resource: `${ARN}/\${aws:username/*` }, 'Policy has an invalid variable'],
  ['unknown variable', { Resource: `${ARN}/\${aws:nothing}/*` }, 'Policy has an invalid variable'],
  ['variable of several values', { Resource: `${ARN}/\${s3:RequestObjectTagKeys}` }, 'Policy has an invalid variable'],
  ['default without quotes', { Resource: `${ARN}/\${aws:username, x}` }, 'Policy has an invalid variable'],
  ['pattern too long', { Resource: `${ARN}/${'a?'.repeat(1100)}*` }, 'Policy has too long a pattern'],
  ['Condition of another type', when('x'), 'Policy has an invalid condition'],
  ['condition without keys', when({ StringEquals: 'x' }), 'Policy has an invalid condition'],
  ['unknown operator', when({ StringIs: { 'aws:Referer': 'x' } }), 'Invalid Condition type: StringIs'],
  ['unknown qualifier', when({ 'ForNoValue:StringEquals': { 'aws:Referer': 'x' } }), 'Invalid Condition type'],
  ['NullIfExists', when({ NullIfExists: { 'aws:Referer': 'true' } }), 'Invalid Condition type'],
  ['unknown key', when({ StringEquals: { 'aws:Nothing': 'x' } }), 'Policy has an invalid condition key: aws:Nothing'],
  [
    'tag without a name',
    when({ StringEquals: { 's3:ExistingObjectTag/': 'x' } }),
    'Policy has an invalid condition key',
  ],
  ['key of a prototype', when({ StringEquals: { constructor: 'x' } }), 'Policy has an invalid condition key'],
  ['key of other actions', when({ StringEquals: { 's3:prefix': 'x' } }), 'Conditions do not apply to combination'],
  ['no values', when({ StringEquals: { 'aws:Referer': [] } }), INVALID],
  ['number', when({ NumericEquals: { 'aws:EpochTime': 'ten' } }), 'Policy has an invalid condition value: ten'],
  ['date', when({ DateLessThan: { 'aws:CurrentTime': '2026-02-30' } }), INVALID],
  ['boolean', when({ Bool: { 'aws:SecureTransport': 'yes' } }), INVALID],
  ['Null', when({ Null: { 'aws:Referer': 'yes' } }), INVALID],
  ['base64', when({ BinaryEquals: { 'aws:Referer': '!' } }), INVALID],
  ['address', when({ IpAddress: { 'aws:SourceIp': '10.0.0.300' } }), INVALID],
  ['variable in an address', when({ IpAddress: { 'aws:SourceIp': '${aws:SourceIp}' } }), INVALID],
  ['short ARN', when({ ArnLike: { 'aws:PrincipalArn': 'arn:aws:iam' } }), INVALID],
]

for (const [name, wrong, message] of cases) {
  const text = typeof wrong === 'string' ? wrong : document({ ...GET, ...wrong })
  t.match(refusal(text), new RegExp(`^${message.replace(/[()]/g, '\\$&')}`), name)
}

t.equal(refusal(document(GET), 'identity'), 'Policy document should not specify a principal: statement 1')
const ofIdentity = (more: object) => refusal(document({ ...GET, Principal: undefined, ...more }), 'identity')
t.match(ofIdentity({ Resource: 'arn:aws:ec2:::x' }), /invalid resource/)
t.equal(ofIdentity({ Action: 's3:ListAllMyBuckets', Resource: '*' }), 'accepted')
t.equal(ofIdentity({ Action: ['s3:UpdateJobStatus', 's3:*JobTagging'], Resource: '*' }), 'accepted')

const accepted: readonly [string, unknown][] = [
  ['all resources', { ...GET, Resource: '*' }],
  ['wildcard in the bucket', { ...GET, Resource: 'arn:aws:s3:::ph*/x' }],
  ['action of a plugin', { ...GET, Action: 'deal:CreateObjectDeal' }],
  ['NotAction of both kinds', { ...GET, Action: undefined, NotAction: ['s3:ListBucket', 's3:ListAllMyBuckets'] }],
  ['prefix with all actions', { ...GET, Action: 's3:*', Condition: { StringLike: { 's3:prefix': '*' } } }],
  ['account number', { ...GET, Principal: { AWS: ['123456789012', 'arn:aws:iam::123456789012:root'] } }],
]
for (const [name, statement] of accepted) t.equal(refusal(document(statement)), 'accepted', name)
t.equal(refusal(JSON.stringify({ Statement: GET, Id: 'x' })), 'accepted', 'without Version')
const former = JSON.stringify({ Version: '2008-10-17', Statement: { ...GET, Resource: `${ARN}/\${none` } })
t.equal(refusal(former), 'accepted', 'Version 2008-10-17 has no variables')

t.test('actions of plugins', async (t) => {
  const asked = { kind: 'bucket', bucket: BUCKET, pluginActions: ['deal:CreateObjectDeal'] } as const
  const parse = (Action: string) => parsePolicy(document({ ...GET, Action }), asked)
  t.ok(parse('deal:Create*'))
  t.throws(() => parse('deal:Nothing'), { code: 'MalformedPolicy' })
  t.throws(() => parse('other:CreateObjectDeal'), { code: 'MalformedPolicy' })
})

t.test('whatever is changed in a document, it is accepted or MalformedPolicy', async (t) => {
  const random = new Random(1)
  const Condition = { 'ForAnyValue:StringLike': { 's3:RequestObjectTag/a': ['${aws:username}*', 'b'] } }
  const text = document(
    allow(['s3:Get*', 's3:PutObject'], [`${ARN}/a*`, '*'], { Sid: 'one', Condition }),
    deny('s3:*', ARN, { Principal: { AWS: `arn:aws:iam::${'a'.repeat(64)}:user/carol` } }),
  )
  const pieces = ['"', '{', '}', '[', ']', ',', ':', '*', '${', '\\', '"Effect"', 'null', '0', 'Not', '\u0000', '😀']
  const outcomes = new Set<string>()
  for (let round = 0; round < 1000; round++) {
    const at = random.below(text.length)
    const end = random.chance(0.5) ? at : at + random.below(9)
    const mutated = text.slice(0, at) + (random.chance(0.7) ? random.of(pieces) : '') + text.slice(end)
    try {
      parsePolicy(mutated, { kind: 'bucket', bucket: BUCKET })
      outcomes.add('accepted')
    } catch (error) {
      outcomes.add((error as S3Error).code ?? `${mutated}: ${error}`)
    }
  }
  t.same([...outcomes].sort(), ['MalformedPolicy', 'accepted'])
})
