import { withinDeadline } from '../../../common/deadline.js'
import type { Context } from '../../../server/context.js'
import { blame } from '../../containment/blame.js'
import type { Expansion, ExpansionSubject } from '../../forms/expansion.js'
import { invalidArgument } from '../codec/names.js'
import type { CallFacts, Document } from '../declare/call.js'

type Call = Pick<CallFacts, 'name' | 'pages' | 'expands'>

/**
 * Finds the expansions that a request asks for. Throws InvalidArgument for a value that has no meaning here.
 * @param wanted values of the parameter `expand`
 */
export function expansionsOf(
  call: Call,
  wanted: readonly string[],
  { plugins }: Pick<Context, 'plugins'>,
): readonly Expansion[] {
  const known = call.expands ? plugins.expansions : []
  return [...new Set(wanted)].map((value) => {
    const found = known.find(({ name }) => name === value)
    if (found) return found
    const choice = known.map(({ name }) => name).join(', ')
    throw invalidArgument('expand', choice === '' ? 'has no values in this call' : `must be one of ${choice}`, value)
  })
}

/** Adds the members of the expansions to the items of the answer, or to the answer itself if it is no list. */
export async function expand(
  call: Call,
  expansions: readonly Expansion[],
  document: Document,
  context: Context,
): Promise<Document> {
  if (expansions.length === 0) return document
  const items = call.pages === undefined ? [document] : (document[call.pages] as readonly Document[])
  const subjects = items.map((item) => call.expands?.(item, document))
  const asked = subjects.filter((subject): subject is ExpansionSubject => subject !== undefined)
  const added = items.map((): Record<string, unknown> => ({}))
  for (const { name, member, join } of expansions) {
    const found = await withinDeadline(join(asked, context), context.limits.pluginDeadlineMs).catch((thrown) => {
      throw blame(thrown, name, `expand=${name}`)
    })
    let at = 0
    for (const [i, subject] of subjects.entries()) {
      const value = subject && found[at++]
      if (value !== undefined) (added[i] as Record<string, unknown>)[member] = value
    }
  }
  const expanded = items.map((item, i) => ({ ...item, ...added[i] }))
  return call.pages === undefined ? (expanded[0] as Document) : { ...document, [call.pages]: expanded }
}
