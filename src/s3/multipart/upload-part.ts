import { S3Error } from '../../common/errors/s3-error.js'
import { quoted } from '../../common/etags.js'
import { defineOperation } from '../../plugins/forms/operation.js'
import { empty } from '../../response/reply.js'
import { stagePart } from './stage-part.js'
import { readPartNumber, requireUploadToFill } from './upload.js'

export const uploadPart = defineOperation({
  name: 'UploadPart',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_UploadPart.html',
  partly: 'Encryption with customer keys is NotImplemented.',
  access: 'signed',
  action: 's3:PutObject',
  keeps: 'uploads',
  needs: { key: 'write' },
  on: { method: 'PUT', resource: 'object', query: ['partNumber', 'uploadId'] },
  async run(request, context) {
    const partNumber = readPartNumber(request, context)
    if (request.headers['content-length'] === undefined && request.headers['transfer-encoding'] === undefined)
      throw new S3Error('MissingContentLength')
    const upload = await requireUploadToFill(request, context)
    const declared = request.body.declaredChecksum
    if (upload.checksum && declared && declared !== upload.checksum.algorithm) {
      throw new S3Error('InvalidRequest', {
        message: `Checksum Type mismatch occurred, expected checksum Type: ${upload.checksum.algorithm.toLowerCase()}, actual checksum Type: ${declared.toLowerCase()}`,
      })
    }
    const part = await stagePart(context, upload, partNumber, request.body)
    return empty({
      etag: quoted(part.etag),
      ...(part.checksum && { [`x-amz-checksum-${part.checksum.algorithm.toLowerCase()}`]: part.checksum.value }),
    })
  },
})
