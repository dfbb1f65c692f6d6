import type { IncomingHttpHeaders } from 'node:http'
import type { Context } from '../../context.js'
import { S3Error } from '../../errors/s3-error.js'
import { FileSource, type SizeRange } from '../../form/form-file.js'
import { checkPolicy, readPolicy } from '../../form/form-policy.js'
import { type FormFile, FormStream, oneFile } from '../../form/form-stream.js'
import { allows } from '../../gateway/policies.js'
import { expirationHeader } from '../../lifecycle/expiration-header.js'
import { ACL } from '../../policy/acl.js'
import { requireAclTrue } from '../../policy/apply-acl.js'
import { refuseRestricted } from '../../policy/public-access-block.js'
import { refuseDemands } from '../../registry/demands.js'
import { defineOperation } from '../../registry/operation.js'
import { declaredDigests } from '../../request/declared-digests.js'
import type { S3Request } from '../../request/s3-request.js'
import type { Reply } from '../../response/reply.js'
import { OBJECT_TAGS } from '../../tagging/tag-rules.js'
import { readTagging } from '../../tagging/tagging-document.js'
import { answerForm } from '../common/answer-form.js'
import { readAttributes } from '../common/attributes.js'
import { causeOf } from '../common/cause.js'
import { quoted } from '../common/etags.js'
import { requireExpectedOwner } from '../common/expected-owner.js'
import { checksumAlgorithmHeader, headerText } from '../common/headers.js'
import { checksumHeaders } from '../common/object-headers.js'
import { admitClass, askedClass, writeAdmitted } from '../common/storage-class.js'
import { writePrecondition } from '../common/write-conditions.js'

/** Upload by a form, as browsers send it. Nothing is stored before all of the form has arrived and been verified. */
export const postObject = defineOperation({
  name: 'PostObject',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/RESTObjectPOST.html',
  on: { method: 'POST', resource: 'bucket' },
  // The signature is in the form.
  access: 'public',
  async run(request, context): Promise<Reply> {
    const form = new FormStream(request.body, headerText(request.headers, 'content-type'))
    try {
      const file = await form.file
      if (!file) {
        await form.ended
        throw oneFile()
      }
      form.fields.substitute(nameOf(file))
      const key = readKey(form, context)
      const admitted = await admit(request, context, form, key)
      return await store(request, admitted, form, file, key)
    } catch (error) {
      form.stop(error as Error)
      throw error
    }
  },
})

/** What follows the last slash or backslash: some browsers tell folders too. */
function nameOf({ filename }: FormFile): string {
  return filename.slice(Math.max(filename.lastIndexOf('/'), filename.lastIndexOf('\\')) + 1)
}

function readKey({ fields }: FormStream, { limits }: Context): string {
  const key = fields.get('key')
  if (!key) {
    throw new S3Error('InvalidArgument', {
      message:
        "Bucket POST must contain a field named 'key'. If it is specified, please check the order of the fields.",
      fields: { ArgumentName: 'key' },
    })
  }
  const size = Buffer.byteLength(key)
  if (size > limits.maxKeyBytes) {
    throw new S3Error('KeyTooLongError', { fields: { Size: size, MaxSizeAllowed: limits.maxKeyBytes } })
  }
  return key
}

interface Admitted {
  /** Of whoever signed the form; else of whoever signed the request; else of nobody, for whom the gateway's policies decide. */
  readonly context: Context
  readonly size: SizeRange
}

async function admit(
  request: S3Request<'bucket'>,
  context: Context,
  { fields }: FormStream,
  key: string,
): Promise<Admitted> {
  const { bucket } = request
  const named = fields.get('bucket')
  if (named !== undefined && named !== bucket) {
    throw new S3Error('AccessDenied', { message: 'The form is for another bucket than the one it was sent to.' })
  }
  const any: SizeRange = { min: 0, max: context.limits.maxPutBytes }
  const caller = await context.authenticateForm(fields)
  if (caller && context.caller) {
    throw new S3Error('InvalidArgument', {
      message: 'Sign the request or the policy in the form, not both.',
      fields: { ArgumentName: 'Authorization' },
    })
  }
  if (caller) {
    const policy = readPolicy(fields.get('policy') ?? '')
    checkPolicy(policy, new Map([...fields.entries(), ['bucket', bucket]]), Date.now())
    const own = context.as(caller)
    own.requireKey(bucket, key, 'write')
    return { context: own, size: { min: policy.size.min, max: Math.min(policy.size.max, any.max) } }
  }
  if (context.caller) {
    context.requireKey(bucket, key, 'write')
    return { context, size: any }
  }
  await refuseRestricted(context.settings, request)
  // The gateway decides when it is asked to store the file, but by then the whole of it has been taken in.
  if (!allows(await context.gateway.listPolicies(bucket), 'put', key)) throw new S3Error('AccessDenied')
  return { context: context.as(undefined), size: any }
}

/** A form brings its bytes along. */
function refuseCopy(headers: IncomingHttpHeaders): void {
  const name = Object.keys(headers).find((header) => /^x-amz-(copy-source|metadata-directive)/.test(header))
  if (name === undefined) return
  throw new S3Error('NotImplemented', {
    message: `A form cannot copy: the field ${name} is for CopyObject.`,
    fields: { Header: name },
  })
}

async function store(
  request: S3Request<'bucket'>,
  { context, size }: Admitted,
  form: FormStream,
  file: FormFile,
  key: string,
): Promise<Reply> {
  const { bucket } = request
  const headers = form.fields.headers()
  refuseDemands(headers, [ACL])
  refuseCopy(headers)
  requireExpectedOwner({ headers }, context)
  await requireAclTrue({ headers, bucket, key }, context)
  const tagging = form.fields.get('tagging')
  // Policies for everybody have no right to tag.
  if (tagging !== undefined && !context.caller) throw new S3Error('AccessDenied')
  const declared = declaredDigests({ ...request, headers }, { kind: 'unsigned' }, false)
  const tags = tagging === undefined ? undefined : await readTagging(Buffer.from(tagging), OBJECT_TAGS)
  const attributes = readAttributes(headers, context)
  const wantChecksum = checksumAlgorithmHeader(headers, 'x-amz-checksum-algorithm')
  const precondition = writePrecondition(request.headers)
  const write = { operation: 'PostObject', bucket, key, metadata: attributes.metadata, headers } as const
  const admitted = await admitClass(askedClass(headers), write, context)
  const { result, headers: told } = await writeAdmitted(context, admitted, write, (archive) =>
    context.store.put({
      bucket,
      key,
      source: new FileSource(form, file, declared, size),
      attributes,
      tags,
      archive,
      wantChecksum,
      event: causeOf('ObjectCreated:Post', request, context),
      precondition,
      maxBytes: size.max,
    }),
  )
  return answerForm(request, form.fields, key, {
    ...told,
    etag: quoted(result.etag),
    ...checksumHeaders(result.checksum),
    'x-amz-expiration': await expirationHeader(context, bucket, { ...result, key, tags }),
  })
}
