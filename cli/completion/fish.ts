import { allCommands, type CommandNode, type FlagNode, shortHelp } from './command-tree.js'

/** Completion for fish: one line for each command and flag, under the condition that its command was typed. */
export function fishCompletion(root: CommandNode): string {
  return `# dealgate completion for fish: put it into ~/.config/fish/completions/dealgate.fish
complete -c dealgate -f
${allCommands(root).flatMap(linesOf).join('\n')}
`
}

function linesOf(node: CommandNode): string[] {
  const condition = quoted(conditionOf(node))
  return [
    ...node.commands.map(
      (below) => `complete -c dealgate -n ${condition} -a ${lastWord(below)} -d ${quoted(below.help)}`,
    ),
    ...node.operands
      .filter(({ words }) => words.length > 0)
      .map(
        ({ words, help }) => `complete -c dealgate -n ${condition} -a ${quoted(words.join(' '))} -d ${quoted(help)}`,
      ),
    ...node.flags.map((flag) => `complete -c dealgate -n ${condition} ${flagText(flag)}`),
  ]
}

/** The command of the node was typed, and none below it. */
function conditionOf({ path, commands }: CommandNode): string {
  const typed = path === '' ? [] : path.split(' ').map((word) => `__fish_seen_subcommand_from ${word}`)
  const below = commands.map(lastWord)
  const not = below.length === 0 ? [] : [`not __fish_seen_subcommand_from ${below.join(' ')}`]
  return [...typed, ...not].join('; and ')
}

function flagText({ long, short, value, required, words, file, help }: FlagNode): string {
  // With -a and without -r fish would offer the values as operands.
  const takes = value === undefined || !required ? '' : file ? ' -r -F' : ' -x'
  const offered = takes !== '' && words.length > 0 ? ` -a ${quoted(words.join(' '))}` : ''
  const letter = short === undefined ? '' : ` -s ${short.slice(1)}`
  return `-l ${long.slice(2)}${letter}${takes}${offered} -d ${quoted(shortHelp(help))}`
}

function lastWord({ path }: CommandNode): string {
  return path.split(' ').at(-1) ?? ''
}

function quoted(text: string): string {
  return `'${text.replace(/['\\]/g, '\\$&')}'`
}
