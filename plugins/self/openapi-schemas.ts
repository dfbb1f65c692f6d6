import { type AnyOperation, type CallFacts, z } from 'dealgate/plugin'

export type Json = Readonly<Record<string, unknown>>

/**
 * Keywords whose value is a schema, a list of schemas, or schemas by name:
 * https://json-schema.org/draft/2020-12/json-schema-core#section-10
 */
const ONE = ['items', 'additionalProperties', 'propertyNames', 'not', 'contains']
const LIST = ['anyOf', 'oneOf', 'allOf', 'prefixItems']
const NAMED = ['properties', 'patternProperties']

/** The schemas of an OpenAPI document. Schemas that refer to themselves become components with a name of their own. */
export class OpenApiSchemas {
  readonly #components: Record<string, Json>

  /** @param fixed components that every document has */
  constructor(fixed: Readonly<Record<string, Json>>) {
    this.#components = { ...fixed }
  }

  components(): Readonly<Record<string, Json>> {
    return this.#components
  }

  /**
   * Converts a schema. Omits refinements, which JSON Schema cannot express.
   * @param name prefix of the names of its components: letters, digits, `_`
   */
  of(schema: z.ZodType, io: 'input' | 'output', name: string): Json {
    const { $schema: _, $defs = {}, ...root } = z.toJSONSchema(schema, { io, unrepresentable: 'any' }) as Json
    const moved = (ref: string) => `#/components/schemas/${componentOf(ref, name)}`
    for (const [defined, inner] of Object.entries($defs as Readonly<Record<string, Json>>))
      this.#components[componentOf(`#/$defs/${defined}`, name)] = rewritten(inner, moved)
    if (!JSON.stringify(root).includes('"$ref":"#"')) return rewritten(root, moved)
    this.#components[componentOf('#', name)] = rewritten(root, moved)
    return { $ref: moved('#') }
  }
}

/** Returns the name of a component: `#` is the schema itself, `#/$defs/x` a schema that it defines. */
function componentOf(ref: string, name: string): string {
  const defined = /^#\/\$defs\/(.+)$/.exec(ref)?.[1]
  return defined === undefined ? name : `${name}_${defined.replaceAll(/[^A-Za-z0-9._-]/g, '_')}`
}

/**
 * Rewrites references, and converts our keyword `element` to that of OpenAPI:
 * https://spec.openapis.org/oas/v3.1.0.html#xml-object
 */
function rewritten({ element, ...schema }: Json, moved: (ref: string) => string): Json {
  const again = (inner: unknown) =>
    typeof inner === 'object' && inner !== null ? rewritten(inner as Json, moved) : inner
  const entries = Object.entries(schema).map(([keyword, value]): [string, unknown] => {
    if (keyword === '$ref') return [keyword, moved(String(value))]
    if (ONE.includes(keyword)) return [keyword, again(value)]
    if (LIST.includes(keyword)) return [keyword, (value as unknown[]).map(again)]
    if (!NAMED.includes(keyword)) return [keyword, value]
    return [keyword, Object.fromEntries(Object.entries(value as Json).map(([name, inner]) => [name, again(inner)]))]
  })
  const whole = Object.fromEntries(entries)
  if (element === undefined) return whole
  return { ...whole, items: { ...(whole.items as Json), xml: { name: element } }, xml: { wrapped: true } }
}

/** A call to describe, with a unique id in the document. */
export interface CalledOperation {
  readonly plugin: string
  readonly operation: AnyOperation
  readonly call: CallFacts
  /** `deal_GetDeal_GET` */
  readonly id: string
  readonly schemas: OpenApiSchemas
}

export function parametersOf(called: CalledOperation): Json[] {
  return [...placeParameters(called.operation), ...queryParameters(called), ...frameParameters(called.call)]
}

function placeParameters({ on, call }: AnyOperation): Json[] {
  const inPath = (name: string) => ({ name, in: 'path', required: true, schema: { type: 'string' } })
  if (on.resource === 'service')
    return [...(on.path ?? '').matchAll(/\{([^}]+)\}/g)].map(([, name]) => inPath(name ?? ''))
  const names = on.resource === 'bucket' ? ['Bucket'] : ['Bucket', 'Key']
  const subresource = {
    name: call?.on.subresource ?? '',
    in: 'query',
    required: true,
    allowEmptyValue: true,
    schema: { type: 'string', enum: [''] },
  }
  return [...names.map(inPath), subresource]
}

function queryParameters({ call, id, schemas }: CalledOperation): Json[] {
  if (!call.query) return []
  const { properties = {}, required = [] } = schemas.of(call.query, 'input', `${id}_query`) as {
    properties?: Record<string, Json>
    required?: string[]
  }
  return Object.entries(properties).map(([name, { description, ...schema }]) => ({
    name,
    in: 'query',
    required: required.includes(name),
    ...(description !== undefined && { description }),
    schema,
  }))
}

function formatsOf({ jsonOnly, csv }: CallFacts): readonly string[] {
  return jsonOnly ? ['json'] : ['json', 'xml', ...(csv ? ['csv'] : [])]
}

/** Parameters that the frame reads. */
function frameParameters(call: CallFacts): Json[] {
  const optional = (name: string, where: 'query' | 'header', schema: Json) => ({
    name,
    in: where,
    required: false,
    schema,
  })
  return [
    optional('format', 'query', { type: 'string', enum: formatsOf(call) }),
    ...(call.pages
      ? [
          optional('max-items', 'query', { type: 'integer', minimum: 1, maximum: 1000 }),
          optional('continuation-token', 'query', { type: 'string' }),
        ]
      : []),
    ...(call.job !== undefined
      ? [
          optional('x-amz-client-token', 'header', { type: 'string', minLength: 1, maxLength: 64 }),
          optional('Prefer', 'header', { type: 'string', examples: ['wait=20'] }),
        ]
      : []),
  ]
}
