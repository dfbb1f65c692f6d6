import { S3Error } from '../../../common/errors/s3-error.js'
import { childText, document, element, parseXml, requireChildren } from '../../../common/xml.js'
import { askedOf, bypassesRetention } from '../../access/required-actions.js'
import { isLockMode, readEnd } from '../../access/values/lock-values.js'
import type { Context } from '../../api/context.js'
import type { Operation } from '../../api/operation.js'
import type { S3Request } from '../../api/request.js'
import type { LockChange, LockMode, ObjectLock } from '../../api/versions.js'
import { requireDigest, requireDocument } from '../../http/read-request.js'
import { empty, xml } from '../../http/reply.js'
import { requireAhead } from './lock-headers.js'
import { refOf, requireLocks, versionHeaders } from './version.js'

export const getObjectRetention = readOperation('GetObjectRetention', 'retention', ({ mode, until }) => {
  if (mode === undefined || until === undefined) return undefined
  const date = new Date(until).toISOString()
  return document('Retention', element('Mode', mode) + element('RetainUntilDate', date))
})

export const getObjectLegalHold = readOperation('GetObjectLegalHold', 'legal-hold', ({ hold }) =>
  document('LegalHold', element('Status', hold ? 'ON' : 'OFF')),
)

export const putObjectRetention = writeOperation('PutObjectRetention', 'retention', async (bytes, request) => {
  const retention = await readRetention(bytes)
  return {
    change: { retention },
    headers: retention
      ? {
          'x-amz-object-lock-mode': retention.mode,
          'x-amz-object-lock-retain-until-date': new Date(retention.until).toISOString(),
        }
      : undefined,
    bypass: bypassesRetention(request.headers),
  }
})

export const putObjectLegalHold = writeOperation('PutObjectLegalHold', 'legal-hold', async (bytes) => {
  const root = await parseXml(bytes, 'LegalHold')
  requireChildren(root, 'LegalHold', { once: ['Status'], many: [] })
  const status = childText(root, 'Status')
  if (status !== 'ON' && status !== 'OFF')
    throw new S3Error('MalformedXML', { message: 'The Status of a legal hold must be ON or OFF.' })
  return { change: { hold: status === 'ON' }, headers: { 'x-amz-object-lock-legal-hold': status }, bypass: false }
})

/** @param shown returns the document; undefined if this is not set */
function readOperation(
  name: 'GetObjectRetention' | 'GetObjectLegalHold',
  subresource: string,
  shown: (lock: ObjectLock) => string | undefined,
): Operation<'object'> {
  return {
    name,
    source: `https://docs.aws.amazon.com/AmazonS3/latest/API/API_${name}.html`,
    access: 'signed',
    ...(name === 'GetObjectLegalHold' && { partly: 'OFF also where none was ever set.' }),
    action: `s3:${name}`,
    on: { method: 'GET', resource: 'object', query: [subresource], params: ['versionId'] },
    async run({ bucket, key, query }, context) {
      const object = await context.store.head(bucket, key, await refOf(query, context))
      if (!object.lock) await requireLockOf(bucket, context)
      const answer = shown(object.lock ?? {})
      if (answer === undefined) throw new S3Error('NoSuchObjectLockConfiguration', { fields: { Key: key } })
      return xml(answer, versionHeaders(object))
    },
  }
}

interface LockRequest {
  readonly change: LockChange
  /** The headers by which a write asks for the same, for conditions of policies. */
  readonly headers: S3Request['headers'] | undefined
  readonly bypass: boolean
}

function writeOperation(
  name: 'PutObjectRetention' | 'PutObjectLegalHold',
  subresource: string,
  read: (bytes: Buffer, request: S3Request<'object'>) => Promise<LockRequest>,
): Operation<'object'> {
  return {
    name,
    source: `https://docs.aws.amazon.com/AmazonS3/latest/API/API_${name}.html`,
    partly: 'NotImplemented on a gateway that cannot lock objects.',
    access: 'signed',
    // Conditions of policies are about the lock in the body.
    action: { each: `s3:${name}` },
    needs: { key: 'write' },
    on: { method: 'PUT', resource: 'object', query: [subresource], params: ['versionId'] },
    async run(request, context) {
      await requireLocks(context, name)
      const { bucket, key, query, headers } = request
      const ref = await refOf(query, context)
      requireDigest(request)
      const asked = await read(await requireDocument(request.body, context.limits.maxDocumentBytes), request)
      const more = { headers: { ...headers, ...asked.headers } }
      const actions = [`s3:${name}`, ...(asked.bypass ? ['s3:BypassGovernanceRetention'] : [])]
      const versionId = query.get('versionId')
      await context.authorizer.decide(...actions.map((action) => askedOf(action, { bucket, key, versionId }, more)))
      await context.gateway.setLock(bucket, key, ref, asked.change, asked.bypass)
      return empty()
    },
  }
}

/** Returns null for an empty document, which ends the retention. */
async function readRetention(bytes: Buffer): Promise<{ readonly mode: LockMode; readonly until: number } | null> {
  const root = await parseXml(bytes, 'Retention')
  requireChildren(root, 'Retention', { once: ['Mode', 'RetainUntilDate'], many: [] })
  const [mode, date] = [childText(root, 'Mode'), childText(root, 'RetainUntilDate')]
  if (mode === undefined && date === undefined) return null
  const until = date === undefined ? undefined : readEnd(date)
  if (!isLockMode(mode) || until === undefined)
    throw new S3Error('MalformedXML', {
      message: 'A retention needs a Mode, GOVERNANCE or COMPLIANCE, and a RetainUntilDate in ISO 8601.',
    })
  requireAhead(until, Date.now())
  return { mode, until }
}

async function requireLockOf(bucket: string, { gateway }: Pick<Context, 'gateway'>): Promise<void> {
  if ((await gateway.versioning(bucket)).lock) return
  throw new S3Error('InvalidRequest', { message: 'Bucket is missing Object Lock Configuration' })
}
