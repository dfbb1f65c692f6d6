import { S3Error } from '../../../common/errors/s3-error.js'
import { childText, document, element, parseXml, requireChildren } from '../../../common/xml.js'
import { requireDigest } from '../../http/read-request.js'
import { xml } from '../../http/reply.js'
import { bucketSetting } from '../bucket/bucket-setting.js'
import { requireVersions } from './version.js'

export const bucketVersioning = bucketSetting({
  name: 'BucketVersioning',
  subresource: 'versioning',
  action: 'BucketVersioning',
  get: {
    access: 'signed',
    anyRight: true,
    async run({ bucket }, { gateway }) {
      const { status } = await gateway.versioning(bucket)
      return xml(document('VersioningConfiguration', element('Status', status)))
    },
  },
  put: {
    partly: 'NotImplemented on a gateway that keeps one version of each object, and for MfaDelete.',
    admit: (_, context) => requireVersions(context, 'PutBucketVersioning'),
    async run(bytes, request, { gateway }) {
      requireDigest(request)
      const root = await parseXml(bytes, 'VersioningConfiguration')
      requireChildren(root, 'VersioningConfiguration', { once: ['Status', 'MfaDelete'], many: [] })
      const [status, mfaDelete] = [childText(root, 'Status'), childText(root, 'MfaDelete')]
      if (mfaDelete === 'Enabled')
        throw new S3Error('NotImplemented', {
          message: 'MfaDelete is not implemented. A retention in COMPLIANCE mode protects versions from everybody.',
        })
      if (mfaDelete !== undefined && mfaDelete !== 'Disabled')
        throw new S3Error('MalformedXML', { message: 'MfaDelete must be Disabled.' })
      if (status === undefined) throw new S3Error('IllegalVersioningConfigurationException')
      if (status !== 'Enabled' && status !== 'Suspended')
        throw new S3Error('MalformedXML', { message: 'Status must be Enabled or Suspended.' })
      await gateway.setVersioning(request.bucket, status)
      return undefined
    },
  },
})
