// This module runs the tests of the page's pure modules, and leaves what came of it where the browser's driver looks.

import { run } from './check.js';
import './fold.test.js';
import './live.test.js';
import './rest.test.js';

window.outcome = run();
