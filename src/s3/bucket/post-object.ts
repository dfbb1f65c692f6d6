import type { IncomingHttpHeaders } from 'node:http'
import { S3Error } from '../../../common/errors/s3-error.js'
import { quoted } from '../../../common/etags.js'
import { DAY_MS } from '../../../common/time.js'
import { refuseRestricted } from '../../access/authorize.js'
import { requireExpectedOwner } from '../../access/bucket-owner.js'
import { ofHeaders, ofWrite } from '../../access/required-actions.js'
import { requireHeaders } from '../../access/values/header-values.js'
import type { Context } from '../../api/context.js'
import type { Reply, S3Request } from '../../api/request.js'
import { VERSION_2 } from '../../auth/signatures/version-2.js'
import { allows } from '../../gateway/account/policies.js'
import { hasDotElement } from '../../gateway/keys.js'
import { declaredDigests } from '../../http/body/declared-digests.js'
import { checkPolicy, type FormPolicy, isFixed, readPolicy } from '../../http/form/form-policy.js'
import { type FormFile, FormStream, oneFile } from '../../http/form/form-stream.js'
import { FileSource, type SizeRange } from '../../http/form/read-form.js'
import { OBJECT_TAGS, readTagging } from '../../http/tags.js'
import { defineOperation } from '../../plugins/define-plugin.js'
import { refuseDemands } from '../../plugins/refuse-keys.js'
import { aclOfWrite } from '../access/acl-operations.js'
import { ACL_HEADERS } from '../access/acl-syntax.js'
import { causeOf, checksumAlgorithmHeader, headerText, REDIRECT, readAttributes } from '../object/attributes.js'
import { askedEncryption, ENCRYPTION_HEADERS } from '../object/encryption.js'
import { checksumHeaders } from '../object/object-headers.js'
import { admitClass, askedClass, writeAdmitted } from '../object/storage-class.js'
import { writePrecondition } from '../object/write-conditions.js'
import { writtenHeaders } from '../object/written-headers.js'
import { askedLock, LOCK_HEADERS } from '../versions/lock-headers.js'
import { answerForm } from './answer-form.js'
import { requireBucket } from './owner.js'

/** Longest validity of a form, as of a signature of version 4. */
const MAX_AHEAD_MS = 7 * DAY_MS

/** Stores an upload by a browser form. Nothing is stored before the whole form has arrived and been verified. */
export const postObject = defineOperation({
  name: 'PostObject',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/RESTObjectPOST.html',
  needs: 'form',
  on: { method: 'POST', resource: 'bucket' },
  // The signature is in the form.
  access: 'public',
  action: { each: 's3:PutObject' },
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

/** Returns the name after the last slash or backslash, because some browsers send the path. */
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
  /**
   * Context of the signer of the form, else of the signer of the request, else of an anonymous caller, whom the
   * gateway's policies restrict.
   */
  readonly context: Context
  readonly size: SizeRange
  /** The signed policy of the form. */
  readonly policy?: FormPolicy
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
    throw new S3Error('AccessDenied', { message: 'The form was sent to another bucket than the one that it names.' })
  }
  const anySize: SizeRange = { min: 0, max: context.limits.maxPutBytes }
  const caller = await context.authenticateForm(fields)
  context.form = { caller: caller ?? context.caller, key, headers: fields.headers() }
  if (caller && context.caller) {
    throw new S3Error('InvalidArgument', {
      message: 'Sign the request or the policy in the form, not both.',
      fields: { ArgumentName: 'Authorization' },
    })
  }
  if (caller) {
    const policy = readPolicy(fields.get('policy') ?? '')
    const ahead = caller.signatureVersion === VERSION_2 ? MAX_AHEAD_MS : undefined
    checkPolicy(policy, new Map([...fields.entries(), ['bucket', bucket]]), Date.now(), ahead)
    if (!isFixed(policy, 'key') && hasDotElement(key)) {
      throw new S3Error('AccessDenied', {
        message: 'The key has the path element "." or "..": a form may have such a key only if its policy states it.',
      })
    }
    const own = context.as(caller)
    const granted = await decideForm(request, own, fields, key)
    own.checks.requireKey(bucket, key, 'write')
    if (!granted) await requireBucket(own, bucket)
    return { context: own, size: { min: policy.size.min, max: Math.min(policy.size.max, anySize.max) }, policy }
  }
  if (context.caller) {
    const granted = await decideForm(request, context, fields, key)
    context.checks.requireKey(bucket, key, 'write')
    if (!granted) await requireBucket(context, bucket)
    return { context, size: anySize }
  }
  await refuseRestricted(context.settings, request)
  const anonymous = context.as(undefined)
  if (await decideForm(request, anonymous, fields, key)) return { context: anonymous, size: anySize }
  // The gateway checks this again when it stores the file, but only after the whole file has been received.
  if (!allows(await context.gateway.listPolicies(bucket), 'put', key)) throw new S3Error('AccessDenied')
  return { context: anonymous, size: anySize }
}

/** Decides about the key of the form. True if a document of the bucket has granted it to another than the owner. */
async function decideForm(
  { bucket }: S3Request<'bucket'>,
  { authorizer, plugins: { storageClasses } }: Context,
  fields: FormStream['fields'],
  key: string,
): Promise<boolean> {
  const headers = fields.headers()
  refuseCopy(headers)
  requireHeaders(headers)
  const tagging = fields.get('tagging')
  const requested = tagging === undefined ? undefined : await readTagging(Buffer.from(tagging), OBJECT_TAGS)
  const names = ['s3:PutObject', ...ofHeaders(headers, storageClasses)]
  if (requested) names.push('s3:PutObjectTagging')
  await authorizer.decide(...names.map((action) => ({ bucket, key, ...ofWrite(action, { headers, requested }) })))
  return names.every((action) => authorizer.granted(action, bucket, key))
}

/** Refuses copy headers: a form contains the bytes of the object. */
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
  { context, size, policy }: Admitted,
  form: FormStream,
  file: FormFile,
  key: string,
): Promise<Reply> {
  const { bucket } = request
  const headers = form.fields.headers()
  refuseDemands(headers, [REDIRECT, ...ENCRYPTION_HEADERS, ...ACL_HEADERS, ...LOCK_HEADERS])
  refuseCopy(headers)
  await requireExpectedOwner({ headers, bucket }, context)
  const acl = await aclOfWrite({ headers, bucket, key }, context)
  const tagging = form.fields.get('tagging')
  // Rules of the gateway cannot grant everybody the right to tag.
  if (tagging !== undefined && !context.caller)
    await context.checks.requireOwner(bucket, { action: 's3:PutObjectTagging', key })
  const declared = declaredDigests({ ...request, headers }, { kind: 'unsigned' })
  const tags = tagging === undefined ? undefined : await readTagging(Buffer.from(tagging), OBJECT_TAGS)
  const attributes = readAttributes(headers, context)
  const encryption = askedEncryption({ ...request, headers }, context)
  const lock = await askedLock({ headers, bucket, key }, context)
  const wantChecksum = checksumAlgorithmHeader(headers, 'x-amz-checksum-algorithm')
  const precondition = writePrecondition(request.headers)
  const { metadata } = attributes
  const stated = Object.entries(metadata).filter(([name]) => !policy || isFixed(policy, `x-amz-meta-${name}`))
  const authorized = await context.checks.authorize(Object.fromEntries(stated), { bucket, key, more: { headers } })
  const write = { operation: 'PostObject', bucket, key, metadata, authorized, headers, encryption } as const
  const admitted = await admitClass(askedClass(headers), write, context)
  const { result, headers: classHeaders } = await writeAdmitted(context, admitted, write, (archive) =>
    context.store.put({
      bucket,
      key,
      source: new FileSource(form, file, declared, size),
      attributes,
      lock,
      tags,
      acl,
      archive,
      authorized,
      wantChecksum,
      encryption,
      event: causeOf('ObjectCreated:Post', request, context),
      precondition,
      maxBytes: size.max,
    }),
  )
  return answerForm(request, form.fields, key, {
    ...classHeaders,
    etag: quoted(result.etag),
    ...checksumHeaders(result.checksum),
    ...(await writtenHeaders(context, { bucket, key, tags, encryption }, result)),
  })
}
