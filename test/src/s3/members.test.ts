import t from 'tap'
import { S3_MEMBERS } from '../../../common/s3-members.js'
import { contentMd5 } from '../../support/content/content.js'
import { startInProcess } from '../../support/server/in-process.js'
import { signedRequest } from '../../support/sign/signed-request.js'
import { commands } from './s3-calls.js'

// What the documents of S3 may hold: every element is honoured, refused by name as NotImplemented, or MalformedXML if
// S3 has none of that name. Nothing is ignored.

const keys = { accessKeyId: 'owner', secretAccessKey: 'owner-secret' }

/** Names that S3's SDK has in its schemas, by the path of the element that holds them. */
function ofSdk(name: string): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>()
  const [, , , , names, types] = inputOf(name)
  types.forEach((type, i) => {
    const traits = traitsOf(type)
    if (traits.httpPayload) walk(typeOf(type), String(traits.xmlName ?? names[i]), found)
  })
  return found
}

type Structure = readonly [number, string, string, unknown, readonly string[], readonly unknown[], ...unknown[]]

function inputOf(name: string): Structure {
  const Command = commands.get(name)
  if (!Command) throw new Error(`the SDK has no ${name}`)
  return new Command({}).schema[4]() as unknown as Structure
}

function traitsOf(type: unknown): Readonly<Record<string, unknown>> {
  const traits: unknown = Array.isArray(type) ? type[1] : undefined
  return typeof traits === 'object' && traits !== null ? (traits as Record<string, unknown>) : {}
}

/** A member is its type, or its type with traits; a type is a number, a schema, or a function that returns it. */
function typeOf(member: unknown): unknown {
  const type = Array.isArray(member) && typeof member[0] !== 'number' ? member[0] : member
  return typeof type === 'function' ? type() : type
}

const [LIST, STRUCTURE] = [1, 3]

function walk(type: unknown, path: string, found: Map<string, Set<string>>): void {
  if (!Array.isArray(type) || type[0] !== STRUCTURE) return
  const [, , , , names, types] = type as unknown as Structure
  for (const [i, name] of names.entries()) {
    const traits = traitsOf(types[i])
    if (traits.xmlAttribute || Object.keys(traits).some((trait) => trait.startsWith('http'))) continue
    const element = String(traits.xmlName ?? name)
    found.set(path, (found.get(path) ?? new Set()).add(element))
    const held = typeOf(types[i])
    const isList = Array.isArray(held) && held[0] === LIST
    if (!isList) walk(held, `${path}/${element}`, found)
    else if (traits.xmlFlattened) walk(typeOf(held[4]), `${path}/${element}`, found)
    else walk(typeOf(held[4]), `${path}/${element}/${String(traitsOf(held[4]).xmlName ?? 'member')}`, found)
  }
}

t.test('the list has everything that the SDK can send: scripts/s3-members.mjs writes it anew', async (t) => {
  const operations = [
    ...['CompleteMultipartUpload', 'CreateBucket', 'DeleteObjects', 'PutBucketAcl', 'PutBucketCors'],
    ...['PutBucketEncryption', 'PutBucketInventoryConfiguration', 'PutBucketLifecycleConfiguration'],
    ...['PutBucketLogging', 'PutBucketNotificationConfiguration', 'PutBucketOwnershipControls', 'PutBucketTagging'],
    ...['PutBucketRequestPayment', 'PutBucketVersioning', 'PutBucketWebsite', 'PutObjectAcl', 'PutObjectLegalHold'],
    ...['PutObjectLockConfiguration', 'PutObjectRetention', 'PutObjectTagging', 'PutPublicAccessBlock'],
    'RestoreObject',
  ]
  let count = 0
  for (const operation of operations) {
    const modelled = ofSdk(operation)
    t.ok(modelled.size > 0, `${operation} has a document`)
    for (const [path, names] of modelled) {
      count += names.size
      const listed = new Set((S3_MEMBERS[path] ?? '').split(' '))
      t.same(
        [...names].filter((name) => !listed.has(name)),
        [],
        `${operation}: ${path}`,
      )
    }
  }
  t.ok(count > 200, `${count} elements`)
})

/** Documents that are accepted, with each element that can hold others once. */
const OWNER = '<Owner><ID>{owner}</ID></Owner>'
const GRANT = '<Grant><Grantee><ID>{owner}</ID></Grantee><Permission>FULL_CONTROL</Permission></Grant>'
const ACL = `<AccessControlPolicy>${OWNER}<AccessControlList>${GRANT}</AccessControlList></AccessControlPolicy>`
const TAGS = '<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>'
const DOCUMENTS: readonly (readonly [target: string, document: string])[] = [
  ['/box?acl', ACL],
  ['/box/k?acl', ACL],
  ['/box?tagging', TAGS],
  ['/box/k?tagging', TAGS],
  [
    '/box?cors',
    '<CORSConfiguration><CORSRule><AllowedMethod>GET</AllowedMethod><AllowedOrigin>*</AllowedOrigin></CORSRule></CORSConfiguration>',
  ],
  [
    '/box?encryption',
    '<ServerSideEncryptionConfiguration><Rule><ApplyServerSideEncryptionByDefault><SSEAlgorithm>AES256</SSEAlgorithm></ApplyServerSideEncryptionByDefault></Rule></ServerSideEncryptionConfiguration>',
  ],
  [
    '/box?ownershipControls',
    '<OwnershipControls><Rule><ObjectOwnership>ObjectWriter</ObjectOwnership></Rule></OwnershipControls>',
  ],
  ['/box?requestPayment', '<RequestPaymentConfiguration><Payer>BucketOwner</Payer></RequestPaymentConfiguration>'],
  ['/box?versioning', '<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>'],
  [
    '/box?publicAccessBlock',
    '<PublicAccessBlockConfiguration><IgnorePublicAcls>false</IgnorePublicAcls></PublicAccessBlockConfiguration>',
  ],
  [
    '/box?lifecycle',
    '<LifecycleConfiguration><Rule><ID>r</ID><Status>Enabled</Status><Filter><And><Prefix>a</Prefix><Tag><Key>k</Key><Value>v</Value></Tag></And></Filter><Expiration><Days>9</Days></Expiration></Rule></LifecycleConfiguration>',
  ],
  [
    '/box?logging',
    '<BucketLoggingStatus><LoggingEnabled><TargetBucket>box</TargetBucket><TargetPrefix>logs/</TargetPrefix></LoggingEnabled></BucketLoggingStatus>',
  ],
  ['/box?notification', '<NotificationConfiguration></NotificationConfiguration>'],
  [
    '/vault?object-lock',
    '<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule><DefaultRetention><Mode>GOVERNANCE</Mode><Days>1</Days></DefaultRetention></Rule></ObjectLockConfiguration>',
  ],
  [
    '/vault/k?retention',
    '<Retention><Mode>GOVERNANCE</Mode><RetainUntilDate>2090-01-01T00:00:00Z</RetainUntilDate></Retention>',
  ],
  ['/vault/k?legal-hold', '<LegalHold><Status>OFF</Status></LegalHold>'],
  [
    '/new-box',
    '<CreateBucketConfiguration><LocationConstraint>us-east-1</LocationConstraint></CreateBucketConfiguration>',
  ],
]

t.test('an element that S3 has is NotImplemented by name, one that it has not MalformedXML', async (t) => {
  const { endpoint, s3 } = await startInProcess(t, 'full', { identities: [keys] })
  await s3.createBucket({ Bucket: 'box' })
  await s3.createBucket({ Bucket: 'vault', ObjectLockEnabledForBucket: true })
  await s3.putObject({ Bucket: 'box', Key: 'k', Body: 'x' })
  await s3.putObject({ Bucket: 'vault', Key: 'k', Body: 'x' })
  const owner = String((await s3.getBucketAcl({ Bucket: 'box' })).Owner?.ID)
  const put = async (target: string, text: string) => {
    const body = text.replaceAll('{owner}', owner)
    const [path = '', subresource] = target.split('?')
    const query = subresource === undefined ? {} : { query: { [subresource]: '' } }
    const answer = await signedRequest(endpoint, keys, {
      method: 'PUT',
      path,
      ...query,
      body,
      headers: contentMd5(body),
    })
    const message = /<Message>([^<]*)</.exec(String(answer.body))?.[1] ?? ''
    return { status: answer.status, code: answer.code, message }
  }
  // Grants are accepted where ACLs are.
  await put(
    '/box?ownershipControls',
    '<OwnershipControls><Rule><ObjectOwnership>ObjectWriter</ObjectOwnership></Rule></OwnershipControls>',
  )
  let refused = 0
  for (const [target, document] of DOCUMENTS) {
    const containers = pathsOf(document).filter((path) => path in S3_MEMBERS)
    t.ok(containers.length > 0, target)
    for (const path of containers) {
      const name = path.slice(path.lastIndexOf('/') + 1)
      const within = (element: string) => put(target, document.replace(`</${name}>`, `${element}</${name}>`))
      const unknown = await within('<Unexpected>1</Unexpected>')
      t.match(unknown, { status: 400, code: 'MalformedXML', message: /Unexpected/ }, `${target} ${path}`)
      for (const member of (S3_MEMBERS[path] ?? '').split(' ').filter((one) => !document.includes(`<${one}>`))) {
        const answer = await within(`<${member}>1</${member}>`)
        t.notMatch(answer.message, /cannot hold/, `${target} ${path}/${member}: ${answer.status} ${answer.code}`)
        if (answer.code !== 'NotImplemented') continue
        refused++
        t.match(answer, { status: 501, message: new RegExp(member.replace(/Configuration$/, '')) })
      }
    }
    t.match(await put(target, document), { status: /^20[04]$/ }, target)
  }
  t.ok(refused > 3, `${refused} elements are NotImplemented`)

  for (const [target, document, member] of [
    ['/vault/k?retention', '<Retention><EventHold>ON</EventHold></Retention>', 'EventHold'],
    ['/vault/k?retention', '<Retention><EventHold>OFF</EventHold></Retention>', 'EventHold'],
    [
      '/vault?object-lock',
      '<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule><DefaultRetention><Mode>GOVERNANCE</Mode><DefaultEventHold><Days>1</Days></DefaultEventHold></DefaultRetention></Rule></ObjectLockConfiguration>',
      'DefaultEventHold',
    ],
  ] as const)
    t.match(await put(target, document), { status: 501, code: 'NotImplemented', message: new RegExp(member) }, member)
})

/** The paths of the elements that hold others. */
function pathsOf(document: string): string[] {
  const open: string[] = []
  const paths = new Set<string>()
  for (const [, end, name = ''] of document.matchAll(/<(\/?)([\w-]+)>/g)) {
    if (end) open.pop()
    else {
      open.push(name)
      paths.add(open.join('/'))
    }
  }
  return [...paths]
}
