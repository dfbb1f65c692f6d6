import { send, sendJson } from '../../lib/api.js'
import { writeDocument, writeTags } from '../../lib/s3.js'
import { Element } from '../../lib/xml.js'
import { encryptionOf } from './encryption.js'
import { retentionOf, timeWords } from './lock.js'
import { quotaOf } from './quota.js'

/**
 * The calls that make a bucket as a form asks: [{ what, state, send(client, signal) }]. Each can be sent again.
 * @param values the FormData of the form
 */
export function stepsOf(bucket, values) {
  const locks = values.has('locks')
  const headers = locks ? { 'x-amz-bucket-object-lock-enabled': 'true' } : {}
  const put = (query, root) => (client, signal) => writeDocument(client, { bucket, signal }, query, String(root))
  const steps = [
    [
      locks ? 'the bucket, with object lock and versioning' : 'the bucket',
      (client, signal) => send(client, { method: 'PUT', bucket, headers, signal }),
    ],
  ]
  // Object lock has turned it on.
  if (values.has('versioning') && !locks)
    steps.push([
      'versioning',
      put('versioning', new Element('VersioningConfiguration', [new Element('Status', 'Enabled')])),
    ])
  const retention = retentionOf(values)
  if (locks && retention.length > 0) {
    const lock = new Element('ObjectLockConfiguration', [new Element('ObjectLockEnabled', 'Enabled'), ...retention])
    steps.push([`default retention, ${values.get('Mode')} for ${timeWords(values)}`, put('object-lock', lock)])
  }
  const encryption = encryptionOf(values)
  if (encryption) steps.push([`default encryption, ${values.get('SSEAlgorithm')}`, put('encryption', encryption)])
  const tags = values.getAll('NAME').map((name, i) => [name, values.getAll('VALUE')[i]])
  if (tags.length > 0) steps.push(['tags', (client, signal) => writeTags(client, { bucket }, tags, signal)])
  const quota = values.has('MiB') ? quotaOf(values) : {}
  if (Object.keys(quota).length > 0)
    steps.push([
      'quota',
      (client, signal) => sendJson(client, { bucket, query: { 'x-quota': '' }, json: quota, signal }),
    ])
  return steps.map(([what, sending]) => ({ what, state: 'waiting', send: sending }))
}
