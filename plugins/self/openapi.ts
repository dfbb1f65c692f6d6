import {
  type AnyOperation,
  type CallFacts,
  type Document,
  defineCall,
  type Expansion,
  jobDocument,
  namespaceOf,
  type Operation,
  type OperationRow,
  pathOf,
  serviceAddress,
  z,
} from 'dealgate/plugin'
import { type CalledOperation, type Json, OpenApiSchemas, parametersOf } from './openapi-schemas.js'

interface DescribedServer {
  readonly title: string
  readonly version: string
  /** URL by which the client reached this server. */
  readonly server: string
  readonly rows: readonly OperationRow[]
}

/**
 * Describes the calls of all plugins as an OpenAPI 3.1 document (https://spec.openapis.org/oas/v3.1.0.html). OpenAPI
 * paths have no queries, so a sub-resource appears after `#` in the path, and as a required parameter.
 */
function describeCalls({ title, version, server, rows }: DescribedServer): Json {
  const paths: Record<string, Record<string, Json>> = {}
  const ids = new Set<string>()
  const schemas = new OpenApiSchemas({ Error: ERROR })
  const plugins = new Set<string>()
  for (const { plugin, operation } of rows) {
    const { call } = operation
    if (!call) continue
    plugins.add(plugin)
    const id = freeId(`${plugin}_${call.name}_${operation.on.method}`, ids)
    const path = separatePath(operation)
    const described = operationObject({ plugin, operation, call, id, schemas })
    paths[path] = { ...paths[path], [operation.on.method.toLowerCase()]: described }
  }
  return {
    openapi: '3.1.0',
    info: {
      title,
      version,
      description: 'The extension endpoints. The rest of the server is Amazon S3.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: server }],
    tags: [...plugins].map((name) => ({ name, description: `Calls of the plugin ${name}.` })),
    security: [{ sigv4: [] }],
    paths,
    components: {
      securitySchemes: {
        sigv4: {
          type: 'apiKey',
          in: 'header',
          name: 'Authorization',
          description: 'AWS Signature Version 4, service s3.',
        },
      },
      schemas: schemas.components(),
    },
  }
}

/** Returns a unique operationId: two calls of a plugin may share a name, but not an id. */
function freeId(wanted: string, taken: Set<string>): string {
  let id = wanted
  for (let n = 2; taken.has(id); n++) id = `${wanted}_${n}`
  taken.add(id)
  return id
}

/** Two operations may share a path and differ only in the method; a sub-resource makes a separate path. */
function separatePath({ on, call }: AnyOperation): string {
  return on.resource === 'service' ? pathOf(on) : `${pathOf(on)}#${call?.on.subresource ?? ''}`
}

/** https://spec.openapis.org/oas/v3.1.0.html#operation-object */
function operationObject(called: CalledOperation): Json {
  const { plugin, call, id } = called
  const error = { description: 'The error.', content: contentOf({ $ref: '#/components/schemas/Error' }) }
  return {
    operationId: id,
    tags: [plugin],
    summary: call.summary,
    ...(call.access === 'public' && { security: [] }),
    parameters: parametersOf(called),
    ...requestBodyOf(called),
    responses: { 200: answerOf(called), ...laterAnswer(called), '4XX': error, default: error },
  }
}

function requestBodyOf(called: CalledOperation): Json {
  const { call } = called
  // Any bytes: https://spec.openapis.org/oas/v3.1.0.html#considerations-for-file-uploads
  if (call.pass) return { requestBody: { required: true, content: { 'application/octet-stream': {} } } }
  return call.body || call.spends ? { requestBody: { content: contentOf(requestOf(called)) } } : {}
}

/** The frame reads `Force` from the body of calls that spend money. */
function requestOf({ call, id, schemas }: CalledOperation): Json {
  const schema = schemas.of(call.body ?? NOTHING, 'input', `${id}_request`)
  return call.spends ? withMembers(schema, { Force: { type: 'boolean' } }) : schema
}

function answerOf({ plugin, call, id, schemas }: CalledOperation): Json {
  const schema = schemas.of(call.result, 'output', `${id}_answer`)
  const xml = { name: call.root ?? `${call.name}Result`, namespace: namespaceOf(plugin) }
  const paging = { IsTruncated: { type: 'boolean' }, NextContinuationToken: { type: 'string' } }
  const document = withMembers(schema, call.pages ? paging : {})
  const content = call.jsonOnly
    ? { 'application/json': { schema: document } }
    : { ...contentOf({ ...document, xml }), ...(call.csv && { 'text/csv': { schema: { type: 'string' } } }) }
  return { description: 'The answer.', content }
}

/** With 202, a call with a job answers with the job; a call that only names a job answers as with 200. */
function laterAnswer(called: CalledOperation): Json {
  const { call, id, schemas } = called
  if (call.job === undefined && !('jobId' in call)) return {}
  const { content } =
    call.job === undefined ? answerOf(called) : { content: contentOf(schemas.of(jobDocument, 'output', `${id}_job`)) }
  return {
    202: {
      description: 'Not done yet: the job that does the work.',
      headers: {
        Location: { schema: { type: 'string' } },
        'x-dealgate-job-id': { schema: { type: 'string' } },
      },
      content,
    },
  }
}

/** Adds members that the frame reads or writes to an object schema. Members of the schema itself take precedence. */
function withMembers(schema: Json, added: Readonly<Record<string, Json>>): Json {
  if (schema.properties === undefined) return schema
  return { ...schema, properties: { ...added, ...(schema.properties as Json) } }
}

function contentOf(schema: Json): Json {
  return { 'application/json': { schema }, 'application/xml': { schema } }
}

const NOTHING = z.strictObject({})

const ERROR: Json = {
  type: 'object',
  required: ['Code', 'Message'],
  properties: {
    Code: { type: 'string' },
    Message: { type: 'string' },
    Resource: { type: 'string' },
    RequestId: { type: 'string' },
    Details: { type: 'object' },
  },
}

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
export function openApiOperation(rows: () => readonly OperationRow[]): Operation<'service'> {
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

type ObjectSchema = z.ZodObject<z.ZodRawShape>

/** Adds to the calls that support `expand` the parameter, and the members that its values add to the answer. */
export function withExpansions(
  rows: readonly OperationRow[],
  expansions: readonly Expansion[],
): readonly OperationRow[] {
  if (expansions.length === 0) return rows
  return rows.map((row) => {
    const { call } = row.operation
    if (!call?.expands) return row
    return { ...row, operation: { ...row.operation, call: expanded(call, expansions) } as OperationRow['operation'] }
  })
}

function expanded(call: CallFacts, expansions: readonly Expansion[]): CallFacts {
  const values = expansions.map(({ name, summary }) => `${name}: ${summary}`).join(' ')
  const expand = z.string().optional().describe(`Values, separated by commas. ${values}`)
  const query = z.strictObject({ ...(call.query as ObjectSchema | undefined)?.shape, expand })
  return { ...call, query: query as z.ZodType<Document>, result: resultOf(call, expansions) as z.ZodType<Document> }
}

/** The schema of the answer, whose items have the members if it is a list, else the answer itself. */
function resultOf({ result, pages }: CallFacts, expansions: readonly Expansion[]): z.ZodType {
  if (pages === undefined) return withExpansionMembers(result, expansions)
  if (!(result instanceof z.ZodObject)) return result
  const list: unknown = result.shape[pages]
  if (!(list instanceof z.ZodArray)) return result
  const items = z.array(withExpansionMembers(list.element as z.ZodType, expansions)).meta(list.meta() ?? {})
  return result.extend({ [pages]: items })
}

function withExpansionMembers(schema: z.ZodType, expansions: readonly Expansion[]): z.ZodType {
  if (!(schema instanceof z.ZodObject)) return schema
  const members = expansions.map(({ name, member, summary, result = z.looseObject({}) }) => [
    member,
    result.optional().describe(`With expand=${name}: ${summary}`),
  ])
  return schema.extend(Object.fromEntries(members))
}
