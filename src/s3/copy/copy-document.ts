import { quoted } from '../../common/etags.js'
import { xmlTime } from '../../common/times.js'
import { document, element } from '../../common/xml/xml.js'
import type { PutResult } from '../../objects/store.js'

/** https://docs.aws.amazon.com/AmazonS3/latest/API/API_CopyObject.html#API_CopyObject_ResponseSyntax */
export function copyDocument({ lastModified, etag, checksum }: PutResult): string {
  return document(
    'CopyObjectResult',
    [
      element('LastModified', xmlTime(lastModified)),
      element('ETag', quoted(etag)),
      checksum ? element('ChecksumType', checksum.type) + element(`Checksum${checksum.algorithm}`, checksum.value) : '',
    ].join(''),
  )
}
