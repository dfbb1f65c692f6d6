import type { Acl } from '../../access/decision/acl.js'
import { S3Error } from '../../common/errors/s3-error.js'
import type { S3Request } from '../../request/s3-request.js'
import type { Context } from '../../server/context.js'
import { type AclOwners, aclOfHeaders } from './acl-headers.js'
import { readAclXml } from './acl-xml.js'

/** Reads the ACL of PutBucketAcl or PutObjectAcl, in headers or body. Throws S3Error. */
export async function readNewAcl(
  request: S3Request,
  context: Pick<Context, 'limits'>,
  owners: AclOwners,
  kind: 'bucket' | 'object',
): Promise<Acl> {
  const inHeaders = aclOfHeaders(request.headers, owners, kind)
  const { bytes } = await request.body.collect(context.limits.maxDocumentBytes)
  if (inHeaders && bytes.length > 0)
    throw new S3Error('InvalidRequest', {
      message: 'An ACL is given in headers or in the body, not in both.',
    })
  if (inHeaders) return inHeaders
  if (bytes.length > 0) return readAclXml(bytes, owners.owner)
  throw new S3Error('MissingSecurityHeader', {
    message: 'An ACL is needed: in x-amz-acl, in x-amz-grant-..., or in the body.',
    fields: { MissingHeaderName: 'x-amz-acl' },
  })
}
