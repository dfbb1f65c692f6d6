import { compareUtf8 } from '../../../common/byte-order.js'
import { wholeNumber } from '../../../common/query.js'
import { xmlTime } from '../../../common/time.js'
import { document, element } from '../../../common/xml.js'
import { xml } from '../../http/reply.js'
import { defineOperation } from '../../plugins/define-plugin.js'
import { decodeToken, encodeToken } from './list-objects.js'
import { ownerElement } from './owner.js'

export const listBuckets = defineOperation({
  name: 'ListBuckets',
  source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListBuckets.html',
  access: 'signed',
  action: 's3:ListAllMyBuckets',
  on: { method: 'GET', resource: 'service', params: ['max-buckets', 'prefix', 'continuation-token', 'bucket-region'] },
  async run(request, context) {
    const prefix = request.query.get('prefix')
    const max = wholeNumber('max-buckets', request.query.get('max-buckets'), { fallback: 10_000, min: 1, max: 10_000 })
    const token = request.query.get('continuation-token')
    const after = token === undefined || token === '' ? '' : decodeToken(token, 'continuation-token')
    const region = request.query.get('bucket-region')
    const all =
      region !== undefined && region !== '' && region !== context.server.region
        ? []
        : await context.gateway.listBuckets()
    const wanted = all
      .filter(
        ({ name }) =>
          (prefix === undefined || name.startsWith(prefix)) && (after === '' || compareUtf8(name, after) > 0),
      )
      .sort((a, b) => compareUtf8(a.name, b.name))
    const page = wanted.slice(0, max)
    const last = page.at(-1)
    const buckets = page.map(
      ({ name, creationDate }) =>
        `<Bucket>${element('Name', name)}${element('CreationDate', xmlTime(creationDate))}</Bucket>`,
    )
    return xml(
      document(
        'ListAllMyBucketsResult',
        [
          ownerElement(context),
          `<Buckets>${buckets.join('')}</Buckets>`,
          element('Prefix', prefix),
          wanted.length > page.length && last ? element('ContinuationToken', encodeToken(last.name)) : '',
        ].join(''),
      ),
    )
  },
})
