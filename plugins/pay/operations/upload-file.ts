import { defineCall, S3Error } from 'dealgate'
import { acting, actorOf } from '../login/acting.js'
import type { PayParts } from '../parts.js'
import { type FileInput, fileQuery, UPLOAD_FILE } from '../upload/file-input.js'
import { BEARER_PURPOSE, fileNameOf, madeUpload } from '../upload/input.js'
import { passFile } from '../upload/pass-file.js'
import { SOURCE } from './sources.js'

export function uploadToIpfs(parts: PayParts) {
  return defineCall({
    name: 'UploadToIpfs',
    source: SOURCE,
    summary: 'Uploads the body of the request to the content-addressed network, without an object.',
    access: 'signed',
    on: { method: 'POST', resource: 'service', path: '/-/pay/v1/uploads' },
    query: fileQuery,
    result: madeUpload,
    root: 'PayUploadResult',
    job: UPLOAD_FILE,
    spends: true,
    async order({ request, query }, context) {
      const { length: size } = request.body
      if (size === undefined) throw new S3Error('MissingContentLength')
      const actor = actorOf(context, request)
      const naming = { named: query['wallet-address'], needsAddress: true }
      const wallet = await acting(parts, actor, naming, async ({ address }) => address)
      const input: FileInput = {
        name: fileNameOf(query['file-name']),
        size,
        days: query['duration-days'],
        fileType: query['file-type'] ?? '0',
        ...(wallet !== undefined && { wallet }),
        ...(actor.bearer !== undefined && { bearer: await parts.host.sealer.seal(actor.bearer, BEARER_PURPOSE) }),
      }
      return { resource: '/-/pay/v1/uploads', input }
    },
    pass: ({ request }, { id, input }, context) =>
      passFile(parts, request, { jobId: id, input: input as FileInput }, context),
  })
}
