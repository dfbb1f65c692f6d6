import { type CommandNode, type FlagNode, sentence, treeOf } from './completion/command-tree.js'
import { createProgram } from './program.js'

/** The manual pages by their file names: `dealgate.1`, and one for each of its commands. */
export function manualPages(version: string): ReadonlyMap<string, string> {
  // The program is declared here and never run.
  const root = treeOf(createProgram())
  const pages = new Map([['dealgate.1', mainPage(root, version)]])
  for (const command of root.commands) pages.set(`${titleOf(command)}.1`, commandPage(command, version))
  return pages
}

function mainPage(root: CommandNode, version: string): string {
  return page('dealgate', version, [
    section('NAME', `dealgate \\- ${roff(root.help)}`),
    section('SYNOPSIS', `${bold('dealgate')} [${italic('command')}] [${italic('option')} ...]`),
    section(
      'DESCRIPTION',
      roff(
        'Without a command, dealgate is dealgate serve: it starts the S3 endpoint, with the embedded services unless --gateway-url names another gateway.',
      ),
    ),
    section(
      'COMMANDS',
      ...root.commands.map((command) => term(`${bold(titleOf(command))}(1)`, roff(sentence(command.help)))),
    ),
    section(
      'CONFIGURATION',
      roff(
        'Each option is a flag, a variable or a member of the config file, which --config or DEALGATE_CONFIG names: JSON, with the names of the flags in camelCase. A flag takes precedence over a variable, a variable over the file, and the file over the default. An empty variable counts as absent.',
      ),
      '.PP',
      roff('Other users of the machine can read secrets on a command line: set them as variables or in the file.'),
    ),
    section('FILES', term(bold('./dealgate-data'), roff('All data, unless --data names another folder.'))),
    section(
      'EXIT STATUS',
      term('0', 'Success.'),
      term('1', 'A failure.'),
      term('2', 'Invalid options; all problems are reported together.'),
    ),
    section('SEE ALSO', root.commands.map((command) => `${bold(titleOf(command))}(1)`).join(',\n')),
  ])
}

function commandPage(command: CommandNode, version: string): string {
  const below = command.commands
  return page(titleOf(command), version, [
    section('NAME', `${roff(titleOf(command))} \\- ${roff(command.help)}`),
    section('SYNOPSIS', (below.length === 0 ? [command] : below).map(synopsis).join('\n.br\n')),
    ...(below.length === 0
      ? [section('DESCRIPTION', roff(sentence(command.help))), ...facts(command, '.SH')]
      : below.map((node) =>
          [section(roff(node.path.toUpperCase()), roff(sentence(node.help))), ...facts(node, '.SS')].join('\n'),
        )),
    section('SEE ALSO', `${bold('dealgate')}(1)`),
  ])
}

function page(title: string, version: string, sections: readonly string[]): string {
  const head = `.TH ${roff(title.toUpperCase())} 1 "" "dealgate ${roff(version)}" "dealgate"`
  return `${[head, '.nh', '.ad l', ...sections].join('\n')}\n`
}

function synopsis({ path, operands }: CommandNode): string {
  const words = operands.map(({ name, required }) => (required ? italic(name) : `[${italic(name)}]`))
  return [bold(`dealgate ${path}`), ...words, `[${italic('option')} ...]`].join(' ')
}

/** Operands, and flags by their groups. */
function facts({ operands, flags }: CommandNode, heading: string): string[] {
  const groups = [...new Set(flags.map(({ group }) => group))]
  return [
    ...(operands.length === 0
      ? []
      : [
          [`${heading} OPERANDS`, ...operands.map(({ name, help }) => term(italic(name), roff(sentence(help))))].join(
            '\n',
          ),
        ]),
    ...groups.map((group) =>
      [`${heading} ${roff(titleOfGroup(group))}`, ...flags.filter((flag) => flag.group === group).map(flagText)].join(
        '\n',
      ),
    ),
  ]
}

function titleOfGroup(group: string): string {
  return group === 'Options' ? 'OPTIONS' : `${group.toUpperCase()} OPTIONS`
}

function flagText({ long, short, value, help, facts }: FlagNode): string {
  const names = [...(short === undefined ? [] : [bold(short)]), bold(long)].join(', ')
  const taken = value === undefined ? '' : ` ${roff(value)}`
  const more = facts && [
    '.br',
    roff([facts.accepts, facts.default && `default ${facts.default}`, facts.variable].filter(Boolean).join('; ')),
  ]
  return term(`${names}${taken}`, roff(help), ...(more ?? []))
}

function titleOf({ path }: CommandNode): string {
  return `dealgate-${path}`
}

/** Text of a manual page: nothing in it is a request or an escape, and a hyphen is the one that a reader copies. */
function roff(text: string): string {
  const escaped = text.replaceAll('\\', '\\e').replaceAll('-', '\\-').replaceAll("'", '\\(aq').replaceAll('`', '')
  return escaped.replace(/^\./gm, '\\&.').replace(/[^\n -~]/gu, inCode)
}

function inCode(character: string): string {
  return `\\[u${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}]`
}

function bold(text: string): string {
  return `\\fB${roff(text)}\\fR`
}

function italic(text: string): string {
  return `\\fI${roff(text)}\\fR`
}

function section(title: string, ...lines: readonly string[]): string {
  return [`.SH ${title}`, ...lines].join('\n')
}

/** A term and its description below it. */
function term(name: string, ...description: readonly string[]): string {
  return ['.TP', name, ...description].join('\n')
}
