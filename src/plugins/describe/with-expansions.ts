import { z } from 'zod'
import type { CallFacts, Document } from '../calls/declare/call.js'
import type { Expansion } from '../forms/expansion.js'
import type { Row } from '../table/table.js'

type ObjectSchema = z.ZodObject<z.ZodRawShape>

/** Adds to the calls that support `expand` the parameter, and the members that its values add to the answer. */
export function withExpansions(rows: readonly Row[], expansions: readonly Expansion[]): readonly Row[] {
  if (expansions.length === 0) return rows
  return rows.map((row) => {
    const { call } = row.operation
    if (!call?.expands) return row
    return { ...row, operation: { ...row.operation, call: expanded(call, expansions) } as Row['operation'] }
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
  if (pages === undefined) return withMembers(result, expansions)
  if (!(result instanceof z.ZodObject)) return result
  const list: unknown = result.shape[pages]
  if (!(list instanceof z.ZodArray)) return result
  const items = z.array(withMembers(list.element as z.ZodType, expansions)).meta(list.meta() ?? {})
  return result.extend({ [pages]: items })
}

function withMembers(schema: z.ZodType, expansions: readonly Expansion[]): z.ZodType {
  if (!(schema instanceof z.ZodObject)) return schema
  const members = expansions.map(({ name, member, summary, result = z.looseObject({}) }) => [
    member,
    result.optional().describe(`With expand=${name}: ${summary}`),
  ])
  return schema.extend(Object.fromEntries(members))
}
