import { type SchemaNode, typesOf, z } from 'dealgate/plugin'

/** A member of a structure, in the terms of botocore's models. */
export interface AwsMember {
  readonly shape: string
  readonly documentation?: string
  /** Location in the request; absent for the body. */
  readonly location?: 'uri' | 'querystring' | 'header'
  readonly locationName?: string
  readonly idempotencyToken?: true
}

export interface AwsMembers {
  readonly members: Readonly<Record<string, AwsMember>>
  readonly required: readonly string[]
  /** The member that is the whole body. */
  readonly payload?: string
}

type AwsShape = Readonly<Record<string, unknown>>

/** The targets of `$ref` in a schema, and the shapes that were created for them. */
interface Schema {
  readonly root: SchemaNode
  readonly rootName: string
  readonly made: Map<string, string>
}

/**
 * Converts schemas to the shapes of a model for the AWS CLI and SDKs. https://smithy.io/2.0/spec/simple-types.html
 * lists the kinds of shapes.
 */
export class AwsShapes {
  readonly #shapes: Record<string, AwsShape> = {
    String: { type: 'string' },
    Long: { type: 'long' },
    Double: { type: 'double' },
    Boolean: { type: 'boolean' },
    Content: { type: 'blob', streaming: true },
    // Any JSON value.
    Document: { type: 'structure', members: {}, document: true },
  }

  all(): Readonly<Record<string, AwsShape>> {
    return this.#shapes
  }

  /** @param name a name that no other structure has */
  structure(name: string, { members, required, payload }: AwsMembers): string {
    return this.#put(name, {
      type: 'structure',
      ...(required.length > 0 && { required }),
      members,
      ...(payload !== undefined && { payload }),
    })
  }

  /**
   * Returns the members of an object schema.
   * @param name prefix of the names of their shapes
   */
  membersOf(schema: z.ZodType, io: 'input' | 'output', name: string): AwsMembers {
    const root = z.toJSONSchema(schema, { io, unrepresentable: 'any' }) as SchemaNode
    return this.#members(root, name, { root, rootName: name, made: new Map() })
  }

  #put(name: string, shape: AwsShape): string {
    this.#shapes[name] = shape
    return name
  }

  #members(node: SchemaNode, name: string, schema: Schema): AwsMembers {
    const choices = choicesOf(node)
    if (choices) return joined(choices.map((choice) => this.#members(choice, name, schema)))
    const members = Object.entries(node.properties ?? {}).map(([member, inner]) => [
      member,
      { shape: this.#of(inner, `${name}${pascal(member)}`, schema), ...documented(inner.description) },
    ])
    return { members: Object.fromEntries(members), required: node.required ?? [] }
  }

  #of(node: SchemaNode, name: string, schema: Schema): string {
    if (node.$ref !== undefined) return this.#referred(node.$ref, name, schema)
    const choices = choicesOf(node)
    if (choices) return this.#choice(choices, name, schema)
    const [type, ...others] = typesOf(node).filter((one) => one !== 'null')
    if (node.allOf) return 'Document'
    if (others.length > 0) return anyOf([type ?? '', ...others])
    switch (type) {
      case 'string':
        return this.#text(node, name)
      case 'integer':
        return 'Long'
      case 'number':
        return 'Double'
      case 'boolean':
        return 'Boolean'
      case 'array':
        return this.#put(name, {
          type: 'list',
          member: { shape: this.#of(node.items ?? {}, `${name}Member`, schema) },
        })
      case 'object':
        return this.#object(node, name, schema)
      default:
        return 'Document'
    }
  }

  #text({ enum: values, const: only, pattern }: SchemaNode, name: string): string {
    const known = values ?? (only === undefined ? undefined : [only])
    if (known) return this.#put(name, { type: 'string', enum: known })
    return pattern === undefined ? 'String' : this.#put(name, { type: 'string', pattern })
  }

  #choice(choices: readonly SchemaNode[], name: string, schema: Schema): string {
    const [first, ...others] = choices
    if (first && others.length === 0) return this.#of(first, name, schema)
    if (choices.every(({ type }) => type === 'object'))
      return this.structure(name, joined(choices.map((choice) => this.#members(choice, name, schema))))
    return anyOf(choices.flatMap(typesOf))
  }

  #object(node: SchemaNode, name: string, schema: Schema): string {
    const { properties = {}, additionalProperties: rest } = node
    if (!rest) return this.structure(name, this.#members(node, name, schema))
    if (Object.keys(properties).length > 0) return 'Document'
    const value = this.#of(rest === true ? {} : rest, `${name}Value`, schema)
    return this.#put(name, { type: 'map', key: { shape: 'String' }, value: { shape: value } })
  }

  /** Names a shape before it is complete, because a schema may refer to itself. */
  #referred(ref: string, name: string, schema: Schema): string {
    const known = schema.made.get(ref)
    if (known !== undefined) return known
    const defined = /^#\/\$defs\/(.+)$/.exec(ref)?.[1]
    const node = (defined === undefined ? schema.root : schema.root.$defs?.[defined]) ?? {}
    // Structures alone can refer to themselves here: a list or map that does becomes a Document.
    const isStructure = node.type === 'object' && !node.additionalProperties
    schema.made.set(ref, isStructure ? name : 'Document')
    return isStructure ? this.#object(node, name, schema) : 'Document'
  }
}

/**
 * Returns one shape for several types. A boolean that may also be text becomes a flag of the command line; a number
 * that may also be text becomes text.
 */
function anyOf(types: readonly string[]): string {
  if (types.length === 0 || types.includes('object') || types.includes('array')) return 'Document'
  if (types.includes('boolean')) return 'Boolean'
  return types.includes('string') ? 'String' : 'Double'
}

/** Returns the alternatives of a schema, except null; undefined for a schema without alternatives. */
function choicesOf({ anyOf, oneOf }: SchemaNode): readonly SchemaNode[] | undefined {
  return (anyOf ?? oneOf)?.filter(({ type }) => type !== 'null')
}

/**
 * Merges the members of alternatives. A member is required if all alternatives require it. The last alternative
 * determines the type of a common member.
 */
function joined(all: readonly AwsMembers[]): AwsMembers {
  const [first, ...others] = all
  const required = (first?.required ?? []).filter((name) => others.every((one) => one.required.includes(name)))
  return { members: Object.assign({}, ...all.map(({ members }) => members)), required }
}

/** Converts `min-size` and `min_size` to MinSize. */
export function pascal(name: string): string {
  return name
    .split(/[^A-Za-z0-9]+/)
    .map((word) => word.slice(0, 1).toUpperCase() + word.slice(1))
    .join('')
}

/** Returns documentation as HTML, which botocore expects. */
export function documented(text: string | undefined): { readonly documentation?: string } {
  if (text === undefined) return {}
  return { documentation: `<p>${text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')}</p>` }
}
