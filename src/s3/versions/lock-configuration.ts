import { S3Error } from '../../../common/errors/s3-error.js'
import { childText, document, element, parseXml, requireChildren, type XmlNode } from '../../../common/xml.js'
import { isLockMode } from '../../access/values/lock-values.js'
import type { LockRule } from '../../api/versions.js'
import { requireDigest } from '../../http/read-request.js'
import { xml } from '../../http/reply.js'
import { bucketSetting } from '../bucket/bucket-setting.js'
import { requireLocks } from './version.js'

/** https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-lock-managing.html */
const MAX_RETENTION_YEARS = 100
const MAX_RETENTION_DAYS = 36_500

export const objectLockConfiguration = bucketSetting({
  name: 'ObjectLockConfiguration',
  subresource: 'object-lock',
  action: 'BucketObjectLockConfiguration',
  get: {
    access: 'signed',
    async run({ bucket }, { gateway }) {
      const { lock } = await gateway.versioning(bucket)
      return lock ? xml(configuration(lock)) : 'ObjectLockConfigurationNotFoundError'
    },
  },
  put: {
    partly: 'NotImplemented on a gateway that cannot lock objects.',
    headers: ['x-amz-bucket-object-lock-token'],
    admit: (_, context) => requireLocks(context, 'PutObjectLockConfiguration'),
    async run(bytes, request, { gateway }) {
      requireDigest(request)
      await gateway.setLockRule(request.bucket, readConfiguration(await parseXml(bytes, 'ObjectLockConfiguration')))
      return undefined
    },
  },
})

function configuration({ mode, days, years }: LockRule): string {
  const retention = `${element('Mode', mode)}${element('Days', days)}${element('Years', years)}`
  const rule = mode === undefined ? '' : `<Rule><DefaultRetention>${retention}</DefaultRetention></Rule>`
  return document('ObjectLockConfiguration', `<ObjectLockEnabled>Enabled</ObjectLockEnabled>${rule}`)
}

/** Throws MalformedXML, InvalidRetentionPeriod. */
function readConfiguration(root: XmlNode): LockRule {
  requireChildren(root, 'ObjectLockConfiguration', { once: ['ObjectLockEnabled', 'Rule'], many: [] })
  if (childText(root, 'ObjectLockEnabled') !== 'Enabled')
    throw new S3Error('MalformedXML', { message: 'ObjectLockEnabled must be Enabled.' })
  const rule = root.children.get('Rule')?.[0]
  if (!rule) return {}
  requireChildren(rule, 'Rule', { once: ['DefaultRetention'], many: [] })
  const retention = rule.children.get('DefaultRetention')?.[0]
  if (!retention) throw new S3Error('MalformedXML', { message: 'The Rule needs a DefaultRetention.' })
  requireChildren(retention, 'DefaultRetention', { once: ['Mode', 'Days', 'Years'], many: [] })
  const [mode, days, years] = ['Mode', 'Days', 'Years'].map((name) => childText(retention, name))
  if (!isLockMode(mode)) throw new S3Error('MalformedXML', { message: 'Mode must be GOVERNANCE or COMPLIANCE.' })
  if ((days === undefined) === (years === undefined))
    throw new S3Error('MalformedXML', { message: 'A DefaultRetention has Days or Years, and not both.' })
  return days === undefined
    ? { mode, years: readPeriod('Years', years, MAX_RETENTION_YEARS) }
    : { mode, days: readPeriod('Days', days, MAX_RETENTION_DAYS) }
}

function readPeriod(name: string, text = '', max: number): number {
  if (!/^-?\d{1,15}$/.test(text)) throw new S3Error('MalformedXML', { message: `${name} must be a whole number.` })
  const period = Number(text)
  if (period >= 1 && period <= max) return period
  throw new S3Error('InvalidRetentionPeriod', {
    message: `Default retention period must be a positive integer value: ${name} must be 1 to ${max}.`,
  })
}
