import { allCommands, type CommandNode, type FlagNode, shortHelp } from './command-tree.js'

/** Completion for zsh: one function for each command, with the flags as `_arguments` takes them. */
export function zshCompletion(root: CommandNode): string {
  return `#compdef dealgate
# dealgate completion for zsh: put it into a folder of $fpath as _dealgate, or source it after compinit
${allCommands(root).map(commandFunction).join('\n')}
if [[ $funcstack[1] == _dealgate ]]; then _dealgate "$@"; else compdef _dealgate dealgate; fi
`
}

function commandFunction(node: CommandNode): string {
  const flags = node.flags.map((flag) => `    ${quoted(flagSpec(flag))}`)
  const operands = node.operands.map(
    ({ name, required, words }, index) =>
      `    ${quoted(`${index + 1}:${required ? '' : ':'}${plain(name)}:${words.length > 0 ? `(${words.join(' ')})` : ''}`)}`,
  )
  const call = (more: readonly string[]) => `  _arguments -s \\\n${[...flags, ...operands, ...more].join(' \\\n')}`
  if (node.commands.length === 0) return `${nameOf(node.path)}() {\n${call([])}\n}`
  const choices = node.commands.map((below) => `    ${quoted(`${lastWord(below)}:${plain(below.help)}`)}`)
  const cases = node.commands.map((below) => `    ${lastWord(below)}) ${nameOf(below.path)} ;;`)
  return `${nameOf(node.path)}() {
  local curcontext=$curcontext state line
  local -a commands=(
${choices.join('\n')}
  )
${call(["    '1: :->command'", "    '*:: :->rest'"])}
  case $state in
    command) _describe -t commands command commands ;;
    rest) case $line[1] in
${cases.map((line) => `  ${line}`).join('\n')}
    esac ;;
  esac
}`
}

function flagSpec({ long, value, required, words, file, help }: FlagNode): string {
  const described = `${long}${value !== undefined && required ? '=' : ''}[${plain(shortHelp(help))}]`
  if (value === undefined) return described
  const offered = words.length > 0 ? `(${words.join(' ')})` : ''
  return `${described}${required ? ':' : '::'}${plain(value.replace(/[<>[\]]/g, ''))}:${file ? '_files' : offered}`
}

function nameOf(path: string): string {
  return ['_dealgate', ...path.split(' ').filter(Boolean)].join('_')
}

function lastWord({ path }: CommandNode): string {
  return path.split(' ').at(-1) ?? ''
}

/** Without the characters that end a part of a specification. */
function plain(text: string): string {
  return text.replace(/[\\[\]:]/g, '\\$&')
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
