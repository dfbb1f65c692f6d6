import { serviceAddress } from '../extension/service-address.js'
import { withValidators } from '../operations/common/validators.js'
import { defineOperation, type Operation } from '../registry/operation.js'
import type { Row } from '../registry/table.js'
import { describeCalls } from './describe.js'

/** Describes the extension endpoints for generators of clients and for people. */
export function openApiOperation(rows: () => readonly Row[]): Operation<'service'> {
  return defineOperation({
    name: 'DescribeExtensions',
    source: 'docs/extensions.md#openapi',
    on: { method: 'GET', resource: 'service', path: '/-/openapi.json', head: true },
    async run(request) {
      const server = `${request.secure ? 'https' : 'http'}://${request.host}${serviceAddress(request)}`
      const body = `${JSON.stringify(describeCalls({ title: 'dealgate', version: '1', server, rows: rows() }))}\n`
      return withValidators({ status: 200, headers: { 'content-type': 'application/json' }, body })
    },
  })
}
