import type { Command, Option as Flag } from 'commander'
import { defaultText } from '../command.js'
import { flagOf, type Option, type OptionName, optionNames, options, variableOf } from '../config/config.js'

export interface CommandNode {
  /** The words behind `dealgate`: `keys add`; empty for the program itself. */
  readonly path: string
  readonly help: string
  readonly flags: readonly FlagNode[]
  readonly operands: readonly OperandNode[]
  readonly commands: readonly CommandNode[]
}

export interface FlagNode {
  readonly long: string
  readonly short?: string
  /** How the value is called in help, with its brackets; absent for a flag without a value. */
  readonly value?: string
  /** The next argument is the value; otherwise the value may only follow `=`. */
  readonly required: boolean
  /** The values, if they are few words. */
  readonly words: readonly string[]
  /** The value is a file or a folder. */
  readonly file: boolean
  readonly help: string
  /** Accepted values, default and variable of an option of the configuration. */
  readonly facts?: { readonly accepts: string; readonly default: string; readonly variable: string }
  readonly group: string
}

interface OperandNode {
  readonly name: string
  readonly required: boolean
  readonly words: readonly string[]
  readonly help: string
}

/** Own flags of commands whose values are files, and options of the configuration that accept a path. */
const FILES = /<(file|folder|path)>/

const PATHS = /\bpath(,|$)/

/** `dealgate` alone takes the options of this command. */
const DEFAULT_COMMAND = 'serve'

export function treeOf(program: Command): CommandNode {
  const root = nodeOf(program, '')
  const serve = root.commands.find(({ path }) => path === DEFAULT_COMMAND)
  const flags = new Map([...root.flags, ...(serve?.flags ?? [])].map((flag) => [flag.long, flag]))
  return { ...root, flags: [...flags.values()] }
}

function nodeOf(command: Command, path: string): CommandNode {
  return {
    path,
    help: command.description(),
    flags: [...command.options.filter(({ hidden, long }) => !hidden && long !== HELP.long).map(flagNode), HELP],
    operands: command.registeredArguments.map((operand) => ({
      name: operand.name(),
      required: operand.required,
      words: operand.argChoices ?? [],
      help: operand.description,
    })),
    commands: command.commands
      .filter((below) => below.name() !== 'help')
      .map((below) => nodeOf(below, `${path} ${below.name()}`.trim())),
  }
}

/** A command and all below it, parents first. */
export function allCommands(node: CommandNode): CommandNode[] {
  return [node, ...node.commands.flatMap(allCommands)]
}

const HELP: FlagNode = {
  long: '--help',
  short: '-h',
  required: false,
  words: [],
  file: false,
  help: 'Print this help.',
  group: 'Options',
}

const configured = new Map(optionNames.map((name) => [flagOf(name), name]))

function flagNode(flag: Flag): FlagNode {
  const long = flag.long ?? ''
  const value = /[<[].*$/.exec(flag.flags)?.[0]
  const name = configured.get(long)
  const option: Option | undefined = name && options[name]
  return {
    long,
    ...(flag.short ? { short: flag.short } : {}),
    ...(value ? { value } : {}),
    required: flag.required,
    words: option?.kind.words ?? flag.argChoices ?? [],
    file: option ? PATHS.test(option.kind.accepts) : FILES.test(flag.flags),
    help: sentence(option?.help ?? flag.description),
    ...(name ? { facts: factsOf(name) } : {}),
    group: flag.helpGroupHeading?.replace(/:$/, '') ?? 'Options',
  }
}

function factsOf(name: OptionName): NonNullable<FlagNode['facts']> {
  const { kind, unit }: Option = options[name]
  const accepts = [kind.accepts, unit].filter(Boolean).join(' ') + (kind.repeatable ? '; may be repeated' : '')
  return { accepts, default: defaultText(name), variable: variableOf(name) }
}

/** A text of help as a sentence. */
export function sentence(text: string): string {
  const whole = text.charAt(0).toUpperCase() + text.slice(1)
  return /[.\])]$/.test(whole) ? whole : `${whole}.`
}

/** The first sentence, without its end: what fits beside an option in a list. */
export function shortHelp(text: string): string {
  return (/^(.*?[^.])\.(?= [A-Z]|$)/s.exec(text)?.[1] ?? text).trim()
}
