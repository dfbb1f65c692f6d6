import { CreateBucketCommand, S3ServiceException } from '@aws-sdk/client-s3'
import t from 'tap'
import { isDemand } from '../../../src/plugins/refuse-keys.js'
import { refusedOperations } from '../../../src/s3/refused.js'
import { allOperations } from '../../support/server/all-operations.js'
import { startDealgate } from '../../support/server/dealgate.js'
import { clientOf, contentOf, furnish } from './furnished.js'
import { command, commands, modelledHeaders } from './s3-calls.js'

/**
 * What becomes of every request header that S3's model knows: an operation honours it, it is refused by name, or it
 * asks for nothing that could be lost.
 */

/** Honoured by every operation whose model has it. */
const HONOURED = new Set([
  ...['cache-control', 'content-disposition', 'content-encoding', 'content-language', 'content-type', 'expires'],
  ...['if-match', 'if-none-match', 'if-modified-since', 'if-unmodified-since', 'range'],
  ...['content-md5', 'x-amz-sdk-checksum-algorithm', 'x-amz-checksum-algorithm', 'x-amz-checksum-type'],
  ...['crc32', 'crc32c', 'crc64nvme', 'sha1', 'sha256', 'sha512', 'md5', 'xxhash64', 'xxhash3', 'xxhash128'].map(
    (name) => `x-amz-checksum-${name}`,
  ),
  ...['x-amz-checksum-mode', 'x-amz-mp-object-size'],
  ...['x-amz-copy-source', 'x-amz-copy-source-range', 'x-amz-copy-source-if-match', 'x-amz-copy-source-if-none-match'],
  ...['x-amz-copy-source-if-modified-since', 'x-amz-copy-source-if-unmodified-since', 'x-amz-metadata-directive'],
  ...['x-amz-expected-bucket-owner', 'x-amz-source-expected-bucket-owner'],
  ...['x-amz-object-attributes', 'x-amz-max-parts', 'x-amz-part-number-marker'],
  'x-amz-bypass-governance-retention',
  'x-amz-storage-class',
  'x-amz-optional-object-attributes',
  'x-amz-skip-destination-validation',
  'x-amz-transition-default-minimum-object-size',
])

/** What asks for nothing that is not so anyway, and why. */
const HARMLESS: Readonly<Record<string, string>> = {
  'content-length': 'part of HTTP',
  'x-amz-request-payer': 'agrees to pay; the owner always pays, and S3 ignores it in such a bucket',
  'x-amz-mfa': 'lets through what MFA Delete would stop; no bucket has that',
  'x-amz-confirm-remove-self-bucket-access': 'confirms what no policy here can do',
  'x-amz-object-annotation-directive': 'says whether annotations are copied; no object has any',
}

/** Values that the model would take. */
const VALUES: Readonly<Record<string, string>> = {
  'x-amz-acl': 'authenticated-read',
  'x-amz-bucket-object-lock-enabled': 'true',
  'x-amz-bucket-namespace': 'account-regional',
  'x-amz-object-lock-retain-until-date': '2040-01-01T00:00:00Z',
  'x-amz-server-side-encryption': 'AES256',
  'x-amz-write-offset-bytes': '0',
}

const implemented = allOperations.filter(
  (operation) => !refusedOperations.includes(operation) && commands.has(operation.name),
)
const fates = implemented.flatMap(({ name, on }) =>
  modelledHeaders(name).map((header) => ({ name, header, fate: fateOf(header, on.headers ?? []) })),
)

function fateOf(header: string, demandsHonoured: readonly string[]): string {
  if (isDemand(header)) return demandsHonoured.includes(header) ? 'honoured' : 'refused'
  if (HONOURED.has(header)) return 'honoured'
  return header in HARMLESS ? 'harmless' : 'unknown'
}

const data = t.testdir()
const server = await startDealgate(t, { data, args: ['--log-level', 'error'] })
const client = clientOf(t, server)
const target = await furnish(client, 'full')

t.test('there is a fate for every header of every operation', async (t) => {
  t.same(
    fates.filter(({ fate }) => fate === 'unknown').map(({ name, header }) => `${name} ${header}`),
    [],
    'a header that S3 has anew: read it, refuse it in src/plugins/table.ts, or say here why it is harmless',
  )
  const modelled = new Set(fates.map(({ header }) => header))
  t.same(
    [...HONOURED, ...Object.keys(HARMLESS)].filter((header) => !modelled.has(header)),
    [],
    'nothing is listed that S3 does not have',
  )
  // A read and a part refuse the headers of encryption by S3's codes, and not as NotImplemented.
  for (const { name, on } of implemented)
    for (const header of (on.headers ?? []).filter((each) => !each.startsWith('x-amz-server-side-encryption')))
      t.ok(modelledHeaders(name).includes(header), `${name} has ${header}`)
})

t.test('what is refused is refused by name, and nothing has happened', async (t) => {
  await client.createBucket({ Bucket: 'other' })
  const before = contentOf(data)
  for (const { name, header } of fates.filter(({ fate }) => fate === 'refused')) {
    const refusal = await refusalOf(name, header)
    // HEAD has no body to say it in.
    if (name.startsWith('Head')) t.equal(refusal.status, 501, `${name} ${header}`)
    else t.match(refusal, { status: /^(501|400)$/, text: header.replace(/.*checksum-/, '') }, `${name} ${header}`)
  }
  t.equal(contentOf(data), before)
})

t.test('elements of documents: honoured, or refused by name', async (t) => {
  const before = contentOf(data)
  const refused = async (send: Promise<unknown>, message: RegExp) =>
    t.rejects(send, { name: 'NotImplemented', message }, String(message))

  for (const [name, CreateBucketConfiguration] of Object.entries({
    Location: { Location: { Type: 'AvailabilityZone', Name: 'use1-az1' } },
    Bucket: { Bucket: { Type: 'Directory', DataRedundancy: 'SingleAvailabilityZone' } },
  } as const)) {
    const create = new CreateBucketCommand({ Bucket: 'refused', CreateBucketConfiguration })
    await refused(client.send(create), new RegExp(name))
  }
  t.equal(contentOf(data), before)

  const Tags = [{ Key: 'team', Value: 'red' }]
  await client.createBucket({ Bucket: 'tagged', CreateBucketConfiguration: { Tags } })
  t.same((await client.getBucketTagging({ Bucket: 'tagged' })).TagSet, Tags)
  const wrong = { Tags: [...Tags, ...Tags] }
  await t.rejects(client.createBucket({ Bucket: 'wrong', CreateBucketConfiguration: wrong }), { name: 'InvalidTag' })
  await t.rejects(client.getBucketTagging({ Bucket: 'wrong' }), { name: 'NoSuchBucket' })
})

async function refusalOf(name: string, header: string): Promise<{ status: number; text: string }> {
  const sent = command(name, target)
  sent.middlewareStack.add(
    (next) => (args) => {
      Object.assign((args.request as { headers: object }).headers, { [header]: VALUES[header] ?? 'x' })
      return next(args)
    },
    { step: 'build' },
  )
  try {
    await client.send(sent)
    return { status: 200, text: '' }
  } catch (error) {
    if (!(error instanceof S3ServiceException)) throw error
    return { status: error.$metadata.httpStatusCode ?? 0, text: error.message.toLowerCase() }
  }
}
