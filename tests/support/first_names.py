"""Names that the API reference had before the modules moved, by package: all of them still work."""

PUBLIC = {
    "credo": (
        "Checkpoint ConvergenceWarning Fit Model Predictive compare decide export fit from_density "
        "from_equinox from_flax from_functions from_linen load load_exported predict prior_predictive refine "
        "replicate subset then"
    ),
    "credo.adapters": (
        "EquinoxNetwork FunctionalNetwork LinenNetwork NNXNetwork from_density from_equinox from_flax "
        "from_functions from_linen"
    ),
    "credo.applications": (
        "Autoregression Backtest Decisions Effects Forecast Grid OneStep PartialDependence Realised "
        "autoregression class_utility cvar decide effects exponential grid_of newsvendor partial_dependence "
        "pinball score_decisions step_utility table_effects"
    ),
    "credo.applications.active": "ACQUISITIONS ActiveLearning acquisition_scores choose labels_needed learn",
    "credo.applications.detection": (
        "Attack Attacked Comparison Detection Roc SCORES Study attack centre_of compare detect detection_of "
        "predictive_loss roc study suspicion threshold"
    ),
    "credo.applications.optimise": (
        "ACQUISITIONS Categorical Evaluation Float GaussianProcess Int Optimizer Space Surrogate "
        "expected_improvement log_expected_improvement"
    ),
    "credo.audit": (
        "Audit Bound Calibration Conjugate Problem Setting Truth audit calibrate elbo gaussian_kl "
        "information_gain measure mutual_information problems"
    ),
    "credo.baselines": "fit_baseline",
    "credo.comparison": "Comparison compare",
    "credo.continual": "Continual Task k_centre learn next_prior random_rows",
    "credo.diagnostics": (
        "Alarm ChainStats Comparison Convergence Diagnostics Elpd GradientNoise GradientVariance ParetoK "
        "PredictiveCheck Stacked StepSize bfmi chain_stats compare diagnose ess function_draws gradient_noise "
        "gradient_variance log_likelihood_draws loo mcse pareto_k posterior_predictive_check rank_counts rhat "
        "stack step_size_check to_arviz waic weight_draws"
    ),
    "credo.estimators": "BayesianClassifier BayesianRegressor",
    "credo.function_space": (
        "Matern52 SquaredExponential gaussian_kl matern52 moments_of_draws spectral_score squared_exponential"
    ),
    "credo.infinite": "FunctionPosterior InfiniteWidth Kernel kernel kernel_of",
    "credo.interchange": "export",
    "credo.likelihoods": (
        "Bernoulli Categorical Gaussian Heteroscedastic HeteroscedasticT Mislabelled NegativeBinomial "
        "Overdispersed Poisson Stretched StudentT Tempered bernoulli categorical default_likelihood gaussian "
        "heteroscedastic heteroscedastic_t mislabelled negative_binomial poisson student_t"
    ),
    "credo.methods": (
        "BayesByBackprop BlackBoxVI CyclicalSGHMC CyclicalSGLD DeepEnsemble EnsembleChains FunctionSpaceVI "
        "Gibbs HMC IVON ImportanceSampling InfiniteWidth Laplace LastLayer MALA MAP MCDropout MCLMC "
        "MaximumLikelihood Metropolis MultiSWAG NUTS PSGLD ReversibleJump SGHMC SGLD SGNHT SMC SVGD SWAG "
        "SimulatedAnnealing VIS refine replicate subset then"
    ),
    "credo.metrics": (
        "Interval Score Terms accuracy adaptive_ece aupr aurc auroc bootstrap brier brier_decomposition "
        "classwise_ece confusion coverage crps difference ece energy_score interval_score interval_width lift "
        "log_likelihood mae majority_accuracy pit pit_histogram precision recall risk_coverage rmse score "
        "sharpness summarise summarise_with_intervals threshold tpr_at_fpr with_interval"
    ),
    "credo.networks": (
        "Augmented DenseMultiHead LeNet MLP MultiHead Recurrent ResNet Shallow VGG augmented gru lenet lstm "
        "mlp multi_head resnet20 shallow vgg"
    ),
    "credo.posteriors": (
        "ActivationDropout GaussianWeights Linearised LowRank MatrixNormal MeanField Multivariate Particles "
        "Samples SubsetPosterior WeightDropout"
    ),
    "credo.priors": (
        "AsPrior ByPath CentredOn Elementwise FanInNormal HalfCauchy HalfNormal Hierarchical Horseshoe "
        "InverseGamma LaplacePrior LogNormal NodeHierarchy Normal ScaleMixture StudentTPrior as_prior by_path "
        "centred_on fan_in_normal half_cauchy half_normal hierarchical horseshoe inverse_gamma laplace "
        "log_normal node_hierarchy normal scale_mixture student_t"
    ),
    "credo.recalibration": (
        "ConformalIntervals ConformalSets Recalibrated TemperatureScaling split_conformal temperature_scaling"
    ),
    "credo.refinement": "Refined first_learned momenta refine",
    "credo.report": (
        "RunData Section figures gradient_variance load_run_data page prior_functions replicated write_report"
    ),
}
