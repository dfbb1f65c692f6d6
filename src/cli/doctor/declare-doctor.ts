import type { Command } from 'commander'
import { addCommand, configOf } from '../command.js'
import { type Config, optionNames } from '../config/config.js'
import type { DoctorFlags } from './doctor.js'

export interface DoctorActions {
  doctor(config: Config, own: DoctorFlags): Promise<void>
}

export function addDoctorCommand(program: Command, actions: DoctorActions): void {
  addCommand(
    program,
    'doctor',
    'check options, data folder, gateway and clock, also of a running server, and say what to do',
    optionNames,
  )
    .option('--endpoint-url <url>', 'check a server elsewhere alone: whether it is ready, its clock, the key pair')
    .option('--report', 'print also versions and options, without secrets, to paste in a report of a problem')
    .action((flags, command) => actions.doctor(configOf(flags, command), flags))
}
