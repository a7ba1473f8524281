/** What stands in for view/step/index.tsx on a saved page, where nothing runs. */
export class Slot {
  readonly stepper = null;

  hello(): Promise<void> {
    return Promise.resolve();
  }
}

export const useStepper = (): null => null;
export const stepSide = (): null => null;
export const stepKey = (): undefined => undefined;
export const StepTop = (): null => null;
export const StepButton = (): null => null;
