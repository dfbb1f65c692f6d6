import type { Command } from 'commander'
import { addCommand, configOf } from '../command.js'
import type { Config, OptionName } from '../config/config.js'
import type { BackupFlags } from './backup.js'
import type { RestoreFlags } from './restore.js'

export interface BackupActions {
  backup(config: Config, destination: string, own: BackupFlags): Promise<void>
  restore(config: Config, path: string, own: RestoreFlags): Promise<void>
}

const BACKUP: readonly OptionName[] = [
  'data',
  'state',
  'staging',
  'credentialsFile',
  'sealingKeyFile',
  'gatewayUrl',
  'gatewayAccessKey',
  'gatewaySecretKey',
  'platformUrl',
  'paymentUrl',
  'kuboApi',
  'print',
  'logLevel',
]
const RESTORE: readonly OptionName[] = ['data', 'print', 'logLevel']
/** `dealgate backup` and `dealgate restore`. */
export function addBackupCommands(program: Command, actions: BackupActions): void {
  addCommand(program, 'backup', 'copy the data folder to a new folder in <folder>, while a server uses it', BACKUP)
    .argument('<folder>', 'the folder of all backups; files that have not changed are linked to the backup before')
    .option('--keep <number>', 'remove the oldest backups beyond this number, 1 to 100000 (default: keep all)')
    .option('--verify', 'read the files of the backup before again, and copy damaged ones anew (default: link them)')
    .addHelpText('after', '\nUse the options of `serve`, so that the backup says what it does not contain.')
    .action((folder, flags, command) => actions.backup(configOf(flags, command, 1), folder, flags))
  addCommand(program, 'restore', 'fill an empty data folder from a backup, and check every file', RESTORE)
    .argument('<backup>', 'a backup, or the folder of all backups for the newest one')
    .option('--check', 'check the backup and write nothing')
    .action((path, flags, command) => actions.restore(configOf(flags, command, 1), path, flags))
}
