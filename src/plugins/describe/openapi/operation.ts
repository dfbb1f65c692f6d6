import { z } from 'zod'
import { serviceAddress } from '../../calls/declare/service-address.js'
import { defineCall } from '../../calls/define-call.js'
import type { Operation } from '../../forms/operation.js'
import type { Row } from '../../table/table.js'
import { describeCalls } from './describe.js'

const member = z.record(z.string(), z.unknown())

/** The members of https://spec.openapis.org/oas/v3.1.0.html#openapi-object that the document has. */
const openApiDocument = z.object({
  openapi: z.string(),
  info: member,
  servers: z.array(member),
  tags: z.array(member),
  security: z.array(member),
  paths: member,
  components: member,
})

/** Defines the call that describes the extension endpoints for client generators and people. */
export function openApiOperation(rows: () => readonly Row[]): Operation<'service'> {
  return defineCall({
    name: 'DescribeExtensions',
    source: 'docs/extensions.md#openapi',
    summary: 'Describes every call beyond S3 as OpenAPI 3.1.',
    access: 'signed',
    on: { method: 'GET', resource: 'service', path: '/-/openapi.json' },
    ownRules: true,
    presignable: true,
    jsonOnly: true,
    result: openApiDocument,
    async answer({ request }) {
      const server = `${request.secure ? 'https' : 'http'}://${request.host}${serviceAddress(request)}`
      const document = describeCalls({ title: 'dealgate', version: '1', server, rows: rows() })
      return document as z.output<typeof openApiDocument>
    },
  })
}
