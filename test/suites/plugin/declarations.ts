import type { AnyOperation } from '../../../src/api/operation.js'
import { accessProblems } from '../../../src/plugins/check-plugins.js'
import { optionFacts } from '../../../src/plugins/option-facts.js'
import { routeText } from '../../../src/plugins/table.js'
import { type CheckResult, result, type Subject } from './subject.js'

/** A link, or a section of a document that comes with the plugin. */
const SOURCE = /^(https?:\/\/\S+|\S+\.md(#\S+)?)$/

/** What users read of a plugin before they use it. */
export function* checkDeclarations(subject: Subject): Generator<CheckResult> {
  const { definition } = subject
  if (definition) {
    yield result('it says in a sentence what it is for', sentence(definition.summary, 'summary'))
    for (const { name, description } of optionFacts(definition.options))
      yield result(`option ${name}: described`, description === '' ? 'give its schema a .describe()' : undefined)
  }
  const plugin = subject.make()
  for (const operation of plugin.operations) {
    yield result(`${operation.name}: documented`, undocumented(operation))
    yield result(
      `${operation.name}: declares who may ask for it`,
      accessProblems(operation, plugin.name).join('; ') || undefined,
    )
  }
  const names = plugin.operations.filter(({ on }) => on.method !== 'OPTIONS').map(({ name }) => name)
  const twice = names.filter((name, i) => names.indexOf(name) < i)
  yield result(
    'each operation has a name of its own',
    twice.length > 0 ? `there are two of ${twice.join(', ')}` : undefined,
  )
}

function undocumented(operation: AnyOperation): string | undefined {
  const { source, call } = operation
  if (!SOURCE.test(source))
    return `the source of ${routeText(operation)} is "${source}": give a link, or a section such as README.md#greeting`
  return call ? sentence(call.summary, 'summary') : undefined
}

function sentence(text: unknown, what: string): string | undefined {
  if (typeof text !== 'string') return `it has no ${what}: give one, in a sentence`
  return text.trim().includes(' ') ? undefined : `its ${what} is "${text}": make it a sentence, of more than one word`
}
